"""The state machine: what each command does to a game's state, what it says, and which commands are admissible.

What one would not guess of upstream is kept:

- Things of a word are numbered by their sorted ids, from the highest down; lists follow the ids and always say "a".
- ``go to R`` is not admissible at R's place, which other receptacles may share; ``look`` names them all.
- ``examine O`` works for the held object alone: a comma in the domain keeps the rule for visible ones from holding.
- ``look`` before the first move sees nothing; only the first feedback lists the receptacles. "Next to it" is said of a
  thing that was taken out of one receptacle here and put into another one here.
- A lamp that was switched once stays on, in its description and for the goal. ``use`` says "You turn on" every time.
- A hot and clean object is "hot and clean", a cool one alone "cold", a container always "normal".
- The text of ``help`` loses its first line break, since leading white space of a sentence is not said.
- The goal is tested on every state. After a win the game continues, and the goal can be lost again.
- White space around a command does not matter; inside it does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from skillc_gym.envs.alfworld.engine.game import Game
from skillc_gym.envs.alfworld.engine.surroundings import (
    Effect,
    Offers,
    contents,
    examined_object,
    examined_receptacle,
    introduction,
    inventory,
    look,
    offers_of,
)
from skillc_gym.envs.alfworld.engine.tables import State
from skillc_gym.errors import ConfigError, InvalidGameError

NOTHING_HAPPENS = "Nothing happens."


class World:
    """One running game: a shared `Game` and a small `State` of its own."""

    __slots__ = ("_offers", "game", "state", "won")

    state: State
    won: bool
    _offers: Offers

    def __init__(self, game: Game) -> None:
        self.game = game
        self._enter(game.start)

    def reset(self) -> str:
        """Goes back to the start and returns the first feedback: the room and the task."""
        self._enter(self.game.start)
        return introduction(self.game, self.state)

    def step(self, command: str) -> tuple[str, bool]:
        """Carries out a command; returns the feedback and whether it was admissible, without which nothing changes."""
        command = command.strip()
        effect = self._offers.effects.get(command)
        if effect is not None:
            action, first, second = effect
            feedback = _EFFECTS[action](self, first, second)
        else:
            # Ways are not among the effects: each place has one to every other, and all offers would repeat them.
            for receptacle, place in self.game.routes.get(command, ()):
                if place != self.state.place:
                    action, feedback = "gotolocation", self._go(receptacle, place)
                    break
            else:
                return NOTHING_HAPPENS, False
        # The goal is asked only where it can have changed: most steps of an episode are ways and looks.
        if action in self.game.goal_test.depends_on:
            self.won = self.game.goal_test.reached(self.state)
        return feedback, True

    @property
    def goal(self) -> str:
        """The task without its prefix "Your task is to:"."""
        return self.game.goal

    @property
    def admissible(self) -> list[str]:
        """The admissible commands, sorted; a new list each time."""
        return list(self._offers.commands)

    @property
    def effects(self) -> Mapping[str, Effect]:
        """What the admissible commands do, by command; the ways to other places are in `Game.routes`."""
        return self._offers.effects

    def snapshot(self) -> State:
        """Returns the state, which is immutable and can be pickled."""
        return self.state

    def restore(self, state: State) -> None:
        """Goes to a state of `snapshot`; ConfigError for another engine's, InvalidGameError for one it cannot be in."""
        if not isinstance(state, State):
            raise ConfigError("The state was made by another engine; engine='native' keeps a State.")
        if len(state.inside) != len(self.game.receptacles) or len(state.lying) != len(self.game.places):
            raise InvalidGameError(f"The state does not belong to the game {self.game.task_id!r}.")
        try:
            self._enter(state)
        except IndexError as error:
            raise InvalidGameError(f"The state does not belong to the game {self.game.task_id!r}.") from error

    def _enter(self, state: State) -> None:
        won, offers = self.game.goal_test.reached(state), offers_of(self.game, state)
        self.state, self.won, self._offers = state, won, offers

    def _change(self, **changes: object) -> None:
        self.state = self.state._replace(**changes)  # type: ignore[arg-type]
        self._offers = offers_of(self.game, self.state)

    def _go(self, receptacle: int, place: int) -> str:
        places, before = self.game.places, self.state.place
        self._change(place=place)
        return self._say_inside("gotolocation", receptacle, lend=places[place], lstart=places[before])

    def _open(self, receptacle: int, _second: int) -> str:
        self._change(opened=self.state.opened | 1 << receptacle)
        return self._say_inside("openobject", receptacle)

    def _close(self, receptacle: int, _second: int) -> str:
        self._change(opened=self.state.opened & ~(1 << receptacle))
        return self._say_inside("closeobject", receptacle)

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
        return self._say("toggleobject", o=self.game.objects[thing])

    def _slice(self, thing: int, knife: int) -> str:
        self.state = self.state._replace(sliced=self.state.sliced | 1 << thing)
        return self._say("sliceobject", co=self.game.objects[thing], ko=self.game.objects[knife])

    def _say(self, action: str, **names: str) -> str:
        return self.game.wording.says[action][0].format(**names)

    def _say_of(self, action: str, thing: int, receptacle: int) -> str:
        return self._say(action, o=self.game.objects[thing], r=self.game.receptacles[receptacle])

    def _say_inside(self, action: str, receptacle: int, **names: str) -> str:
        inside = contents(self.game, self.state, receptacle)
        return self._say(action, r=self.game.receptacles[receptacle], contents=inside, **names)


_EFFECTS: dict[str, Callable[[World, int, int], str]] = {
    "openobject": World._open,
    "closeobject": World._close,
    "pickupobject": World._take,
    "putobject": World._put,
    "examinereceptacle": lambda world, receptacle, _: examined_receptacle(world.game, world.state, receptacle),
    "examineobject": lambda world, thing, _: examined_object(world.game, world.state, thing),
    "toggleobject": World._toggle,
    "heatobject": World._heat,
    "cleanobject": World._clean,
    "coolobject": World._cool,
    "sliceobject": World._slice,
    "inventory": lambda world, _first, _second: inventory(world.game, world.state),
    "look": lambda world, _first, _second: look(world.game, world.state),
    "help": lambda world, _first, _second: world.game.wording.says["help"][0],
}


def _replaced(rows: tuple[tuple[int, ...], ...], index: int, row: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    return (*rows[:index], row, *rows[index + 1 :])


def _without(row: tuple[int, ...], thing: int) -> tuple[int, ...]:
    return tuple([other for other in row if other != thing])


def _with(row: tuple[int, ...], thing: int) -> tuple[int, ...]:
    return row if thing in row else tuple(sorted((*row, thing)))
