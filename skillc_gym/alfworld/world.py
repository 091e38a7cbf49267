"""The state machine: what each command does to a game's state, what it says, and which commands are admissible."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from skillc_gym.alfworld.game import Game
from skillc_gym.alfworld.state import State
from skillc_gym.errors import InvalidGameError

__all__ = ["NOTHING_HAPPENS", "World"]

NOTHING_HAPPENS = "Nothing happens."

_CACHED_VIEWS = 256

Deed = tuple[str, int, int]
"""Action and the indices of its two things, -1 where it has fewer."""


class View(NamedTuple):
    """What can be done at some place in some state of its surroundings."""

    commands: tuple[str, ...]
    deeds: dict[str, Deed]


class World:
    """One running game: a shared `Game` and a small `State` of its own.

    Example:
        >>> world = World(game)                                   # doctest: +SKIP
        >>> print(world.reset())                                  # doctest: +SKIP
        >>> feedback, admissible = world.step("go to desk 1")     # doctest: +SKIP
    """

    __slots__ = ("_view", "game", "state", "won")

    state: State
    won: bool
    _view: View

    def __init__(self, game: Game) -> None:
        self.game = game
        self._enter(game.start)

    def reset(self) -> str:
        """Goes back to the start and returns the first feedback: the room and the task."""
        self._enter(self.game.start)
        rules = self.game.wording.rules
        return rules["intro"][0].format(view=self._look(intro=True), task=self.game.task)

    def step(self, command: str) -> tuple[str, bool]:
        """Carries out a command.

        Args:
            command: What the agent says; white space around it does not matter.

        Returns:
            The feedback, and whether the command was admissible. One that was not changes nothing.
        """
        command = command.strip()
        deed = self._view.deeds.get(command)
        if deed is not None:
            action, first, second = deed
            feedback = _DEEDS[action](self, first, second)
        else:
            for receptacle, place in self.game.routes.get(command, ()):
                if place != self.state.place:
                    action, feedback = "gotolocation", self._go(receptacle, place)
                    break
            else:
                return NOTHING_HAPPENS, False
        if action in self.game.goal_test.depends_on:
            self.won = self.game.goal_test.reached(self.state)
        return feedback, True

    @property
    def admissible(self) -> list[str]:
        """The admissible commands, sorted; a new list each time."""
        return list(self._view.commands)

    def is_admissible(self, command: str) -> bool:
        """Whether a command, white space around it aside, would be carried out."""
        return command.strip() in self._view.commands

    def snapshot(self) -> State:
        """Returns the state, which is immutable and can be pickled."""
        return self.state

    def restore(self, state: State) -> None:
        """Goes to a state that this game's `snapshot` returned."""
        if len(state.inside) != len(self.game.receptacles) or len(state.lying) != len(self.game.places):
            raise InvalidGameError(f"The state does not belong to the game {self.game.task_id!r}.")
        self._enter(state)

    def _enter(self, state: State) -> None:
        self.state = state
        self.won = self.game.goal_test.reached(state)
        self._view = self._look_up()

    def _change(self, **changes: object) -> None:
        self.state = self.state._replace(**changes)  # type: ignore[arg-type]
        self._view = self._look_up()

    # What can be done.

    def _look_up(self) -> View:
        state, game = self.state, self.game
        here = game.here[state.place]
        with_knife = state.held in game.knives
        key = (
            state.place,
            state.held,
            tuple([(state.opened >> receptacle & 1, state.inside[receptacle]) for receptacle in here]),
            state.lying[state.place] if with_knife else None,
        )
        cache = game.cache
        view = cache.get(key)
        if view is None:
            if len(cache) >= _CACHED_VIEWS:
                cache.clear()
            view = cache[key] = self._make_view(with_knife)
        return view  # type: ignore[no-any-return]

    def _make_view(self, with_knife: bool) -> View:
        state, game = self.state, self.game
        deeds: dict[str, Deed] = {}
        for receptacle in game.here[state.place]:
            self._offer_receptacle(deeds, receptacle)
        # The domain means to offer what is in sight too, but a comma in it ("location,") makes that never hold.
        if state.held >= 0:
            self._offer(deeds, "examineobject", state.held, -1, o=game.objects[state.held])
        if with_knife:
            for thing in state.lying[state.place]:
                if thing in game.sliceable:
                    names = {"co": game.objects[thing], "ko": game.objects[state.held]}
                    self._offer(deeds, "sliceobject", thing, state.held, **names)
        for action in ("inventory", "look", "help"):
            self._offer(deeds, action, -1, -1)
        routes = [
            command for command, targets in game.routes.items() if any(place != state.place for _, place in targets)
        ]
        return View(tuple(sorted({*deeds, *routes})), deeds)

    def _offer(self, deeds: dict[str, Deed], action: str, first: int, second: int, **names: str) -> None:
        if action in self.game.actions:
            command = self.game.wording.commands[action].format(**names)
            deeds.setdefault(command, (action, first, second))

    def _offer_receptacle(self, deeds: dict[str, Deed], receptacle: int) -> None:
        state, game = self.state, self.game
        name = game.receptacles[receptacle]
        opened, openable = state.opened >> receptacle & 1, game.openable >> receptacle & 1
        self._offer(deeds, "examinereceptacle", receptacle, -1, r=name)
        if openable:
            self._offer(deeds, "closeobject" if opened else "openobject", receptacle, -1, r=name)
        within_reach = opened or not openable
        for thing in state.inside[receptacle]:
            if within_reach and state.held < 0 and thing in game.pickupable:
                self._offer(deeds, "pickupobject", thing, receptacle, o=game.objects[thing], r=name)
            if thing in game.toggleable:
                self._offer(deeds, "toggleobject", thing, receptacle, o=game.objects[thing])
        if state.held >= 0:
            self._offer_held(deeds, receptacle, bool(within_reach))

    def _offer_held(self, deeds: dict[str, Deed], receptacle: int, within_reach: bool) -> None:
        game, held = self.game, self.state.held
        names = {"o": game.objects[held], "r": game.receptacles[receptacle]}
        if within_reach and held in game.accepts[receptacle]:
            self._offer(deeds, "putobject", held, receptacle, **names)
        for action, (receptacles, objects) in game.treats.items():
            if receptacle in receptacles and held in objects:
                self._offer(deeds, action, held, receptacle, **names)

    # What is done, and said.

    def _go(self, receptacle: int, place: int) -> str:
        game, before = self.game, self.state.place
        self._change(place=place)
        return self._say(
            "gotolocation",
            r=game.receptacles[receptacle],
            lend=game.places[place],
            lstart=game.places[before],
            contents=self._contents(receptacle),
        )

    def _open(self, receptacle: int, _second: int) -> str:
        self._change(opened=self.state.opened | 1 << receptacle)
        name = self.game.receptacles[receptacle]
        return self._say("openobject", r=name, contents=self._contents(receptacle))

    def _close(self, receptacle: int, _second: int) -> str:
        self._change(opened=self.state.opened & ~(1 << receptacle))
        name = self.game.receptacles[receptacle]
        return self._say("closeobject", r=name, contents=self._contents(receptacle))

    def _take(self, thing: int, receptacle: int) -> str:
        state = self.state
        self._change(
            held=thing,
            inside=_replaced(state.inside, receptacle, _without(state.inside[receptacle], thing)),
            lying=_replaced(state.lying, state.place, _without(state.lying[state.place], thing)),
            left=state.left | {(thing, receptacle)},
        )
        return self._say_of("pickupobject", thing, receptacle)

    def _put(self, thing: int, receptacle: int) -> str:
        state = self.state
        self._change(
            held=-1,
            inside=_replaced(state.inside, receptacle, _with(state.inside[receptacle], thing)),
            lying=_replaced(state.lying, state.place, _with(state.lying[state.place], thing)),
            left=state.left - {(thing, receptacle)},
        )
        return self._say_of("putobject", thing, receptacle)

    def _clean(self, thing: int, receptacle: int) -> str:
        self.state = self.state._replace(clean=self.state.clean | 1 << thing)
        return self._say_of("cleanobject", thing, receptacle)

    def _heat(self, thing: int, receptacle: int) -> str:
        bit = 1 << thing
        self.state = self.state._replace(hot=self.state.hot | bit, cool=self.state.cool & ~bit)
        return self._say_of("heatobject", thing, receptacle)

    def _cool(self, thing: int, receptacle: int) -> str:
        bit = 1 << thing
        self.state = self.state._replace(cool=self.state.cool | bit, hot=self.state.hot & ~bit)
        return self._say_of("coolobject", thing, receptacle)

    def _toggle(self, thing: int, _receptacle: int) -> str:
        bit = 1 << thing
        self.state = self.state._replace(toggled=self.state.toggled | bit, lit=self.state.lit ^ bit)
        return self.game.wording.says["toggleobject"][0].format(o=self.game.objects[thing])

    def _slice(self, thing: int, knife: int) -> str:
        self.state = self.state._replace(sliced=self.state.sliced | 1 << thing)
        return self._say("sliceobject", co=self.game.objects[thing], ko=self.game.objects[knife])

    def _say(self, action: str, **names: str) -> str:
        return self.game.wording.says[action][0].format(**names)

    def _say_of(self, action: str, thing: int, receptacle: int) -> str:
        return self.game.wording.says[action][0].format(o=self.game.objects[thing], r=self.game.receptacles[receptacle])

    # What is seen.

    def _contents(self, receptacle: int) -> str:
        return self._examined(receptacle, self.game.wording.rules["examineReceptacle.feedback"])

    def _examine_receptacle(self, receptacle: int, _second: int) -> str:
        return self._examined(receptacle, self.game.wording.says["examinereceptacle"])

    def _examined(self, receptacle: int, sentences: tuple[str, ...]) -> str:
        game = self.game
        name = game.receptacles[receptacle]
        if not game.openable >> receptacle & 1:
            sentence = sentences[2]
        elif self.state.opened >> receptacle & 1:
            sentence = sentences[0]
        else:
            return sentences[1].format(r=name)
        return sentence.format(r=name, things=self._things(self.state.inside[receptacle]))

    def _things(self, things: tuple[int, ...]) -> str:
        objects = self.game.objects
        return self.game.wording.listing(["a " + objects[thing] for thing in things])

    def _examine_object(self, thing: int, _second: int) -> str:
        game = self.game
        sentence = game.wording.says["examineobject"][self._condition(thing)]
        inner = ["a " + name for name in game.holders.get(thing, ())]
        return sentence.format(o=game.objects[thing], things=game.wording.listing(inner))

    def _condition(self, thing: int) -> int:
        """Returns which of the grammar's sentences fits an object; the order is the grammar's."""
        game, state = self.game, self.state
        if thing in game.holders:
            return 0
        clean, hot = state.clean >> thing & 1, state.hot >> thing & 1
        cool, sliced = state.cool >> thing & 1, state.sliced >> thing & 1
        if sliced and (clean or hot or cool):
            return (1 if hot else 2 if cool else 3) if clean else (4 if hot else 5)
        if clean or hot or cool:
            return (6 if hot else 7 if cool else 9) if clean else (8 if hot else 10)
        if thing in game.toggleable and state.toggled >> thing & 1:
            return 11
        return 13 if sliced and thing in game.sliceable else 14

    def _inventory(self, _first: int, _second: int) -> str:
        held = self.state.held
        sentences = self.game.wording.says["inventory"]
        return sentences[1] if held < 0 else sentences[0].format(things=self._things((held,)))

    def _help(self, _first: int, _second: int) -> str:
        return self.game.wording.says["help"][0]

    def _look_around(self, _first: int, _second: int) -> str:
        return self._look(intro=False)

    def _look(self, intro: bool) -> str:
        """Says where the agent is; only the intro tells all receptacles of the house."""
        game, rules = self.game, self.game.wording.rules
        here = game.here[self.state.place]
        sentences = rules["look.feedback"] if intro else game.wording.says["look"]
        if here:
            places = game.wording.listing([game.receptacles[receptacle] for receptacle in here])
            return sentences[0].format(facing=rules["look-variations"][0].format(places=places), floor=self._floor())
        seen = [f"a {name}" for name, places in zip(game.receptacles, game.places_of, strict=True) for _ in places]
        appliances = rules["list_appliances"]
        if not intro or not seen:
            return sentences[1].format(appliances=appliances[1])
        return sentences[1].format(appliances=appliances[0].format(things=game.wording.listing(seen)))

    def _floor(self) -> str:
        state, game = self.state, self.game
        sentences = game.wording.rules["list_objects_on_the_floor"]
        fallen = [
            "a " + game.objects[thing]
            for thing in state.lying[state.place]
            for receptacle in game.here[state.place]
            if (thing, receptacle) in state.left
        ]
        return sentences[0].format(things=game.wording.listing(fallen)) if fallen else sentences[1]


_DEEDS: dict[str, Callable[[World, int, int], str]] = {
    "openobject": World._open,
    "closeobject": World._close,
    "pickupobject": World._take,
    "putobject": World._put,
    "examinereceptacle": World._examine_receptacle,
    "examineobject": World._examine_object,
    "toggleobject": World._toggle,
    "heatobject": World._heat,
    "cleanobject": World._clean,
    "coolobject": World._cool,
    "sliceobject": World._slice,
    "inventory": World._inventory,
    "look": World._look_around,
    "help": World._help,
}


def _replaced(rows: tuple[tuple[int, ...], ...], index: int, row: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    return (*rows[:index], row, *rows[index + 1 :])


def _without(row: tuple[int, ...], thing: int) -> tuple[int, ...]:
    return tuple([other for other in row if other != thing])


def _with(row: tuple[int, ...], thing: int) -> tuple[int, ...]:
    return row if thing in row else tuple(sorted((*row, thing)))
