"""What can be done and what is seen: admissible commands with their effects, and sentences that describe a state."""

from __future__ import annotations

from typing import NamedTuple

from skillc_gym.envs.alfworld.engine.game import Game
from skillc_gym.envs.alfworld.engine.tables import State

CACHED_OFFERS = 256
"""How many offers a game keeps; they are made again when they are needed again."""

Effect = tuple[str, int, int]
"""Action and the indices of its two things, -1 where it has fewer."""


class Offers(NamedTuple):
    """What can be done at some place: sorted commands, and what they do, but for the ways to other places."""

    commands: tuple[str, ...]
    effects: dict[str, Effect]


def offers_of(game: Game, state: State) -> Offers:
    """Returns what can be done in a state.

    It depends on little of the state, so games remember it: where the agent is, what it holds, what is within reach.
    """
    here = game.here[state.place]
    with_knife = state.held in game.knives
    key = (
        state.place,
        state.held,
        tuple([(state.opened >> receptacle & 1, state.inside[receptacle]) for receptacle in here]),
        state.lying[state.place] if with_knife else None,
    )
    cache: dict[object, Offers] = game.offers
    found = cache.get(key)
    if found is None:
        if len(cache) >= CACHED_OFFERS:
            # Environments of several threads share the cache: an order of use would need a lock at every step.
            cache.clear()
        found = cache[key] = _Offering(game, state).gather(with_knife)
    return found


class _Offering:
    def __init__(self, game: Game, state: State) -> None:
        self._game = game
        self._state = state
        self._effects: dict[str, Effect] = {}

    def gather(self, with_knife: bool) -> Offers:
        game, state = self._game, self._state
        for receptacle in game.here[state.place]:
            self._at(receptacle)
        # The domain means to offer what is in sight too, but a comma in it ("location,") makes that never hold.
        if state.held >= 0:
            self._offer("examineobject", state.held, -1, o=game.objects[state.held])
        if with_knife:
            for thing in state.lying[state.place]:
                if thing in game.sliceable:
                    self._offer("sliceobject", thing, state.held, co=game.objects[thing], ko=game.objects[state.held])
        for action in ("inventory", "look", "help"):
            self._offer(action, -1, -1)
        return Offers(tuple(sorted({*self._effects, *game.ways_from(state.place)})), self._effects)

    def _offer(self, action: str, first: int, second: int, **names: str) -> None:
        if action in self._game.actions:
            command = self._game.wording.commands[action].format(**names)
            # In a game's own words two actions may read alike: the one offered first is carried out.
            self._effects.setdefault(command, (action, first, second))

    def _at(self, receptacle: int) -> None:
        game, state = self._game, self._state
        name = game.receptacles[receptacle]
        opened, openable = state.opened >> receptacle & 1, game.openable >> receptacle & 1
        self._offer("examinereceptacle", receptacle, -1, r=name)
        if openable:
            self._offer("closeobject" if opened else "openobject", receptacle, -1, r=name)
        within_reach = bool(opened or not openable)
        for thing in state.inside[receptacle]:
            if within_reach and state.held < 0 and thing in game.pickupable:
                self._offer("pickupobject", thing, receptacle, o=game.objects[thing], r=name)
            if thing in game.toggleable:
                self._offer("toggleobject", thing, receptacle, o=game.objects[thing])
        if state.held >= 0:
            self._with_held(receptacle, within_reach)

    def _with_held(self, receptacle: int, within_reach: bool) -> None:
        game, held = self._game, self._state.held
        names = {"o": game.objects[held], "r": game.receptacles[receptacle]}
        if within_reach and held in game.accepts[receptacle]:
            self._offer("putobject", held, receptacle, **names)
        for action, (receptacles, objects) in game.treats.items():
            if receptacle in receptacles and held in objects:
                self._offer(action, held, receptacle, **names)


def introduction(game: Game, state: State) -> str:
    """Says where the agent is and what its task is; only this tells all receptacles of the house."""
    rules = game.wording.rules
    view = _around(game, state, rules["look.feedback"], whole_house=True)
    return rules["intro"][0].format(view=view, task=game.task)


def look(game: Game, state: State) -> str:
    """Says what the agent faces and what lies about."""
    return _around(game, state, game.wording.says["look"], whole_house=False)


def contents(game: Game, state: State, receptacle: int) -> str:
    """Says what is in or on a receptacle, as part of another sentence."""
    return _inside(game, state, receptacle, game.wording.rules["examineReceptacle.feedback"])


def examined_receptacle(game: Game, state: State, receptacle: int) -> str:
    """Says what is in or on a receptacle."""
    return _inside(game, state, receptacle, game.wording.says["examinereceptacle"])


def examined_object(game: Game, state: State, thing: int) -> str:
    """Says what is special about an object."""
    sentence = game.wording.says["examineobject"][condition_of(game, state, thing)]
    inner = ["a " + name for name in game.holders.get(thing, ())]
    return sentence.format(o=game.objects[thing], things=game.wording.listing(inner))


def inventory(game: Game, state: State) -> str:
    """Says what the agent holds."""
    sentences = game.wording.says["inventory"]
    return sentences[1] if state.held < 0 else sentences[0].format(things="a " + game.objects[state.held])


def condition_of(game: Game, state: State, thing: int) -> int:
    """Returns which of the grammar's sentences on an object fits; the numbers are the grammar's order."""
    if thing in game.holders:
        return 0
    # The grammar lists its sentences by how much they say, and the first whose condition holds is said; a conjunction
    # that it does not list (cool and hot, say) falls to the next that fits.
    clean, hot = state.clean >> thing & 1, state.hot >> thing & 1
    cool, sliced = state.cool >> thing & 1, state.sliced >> thing & 1
    # 1: hot, clean, sliced ... 5: cool, sliced; 6 to 10 are those without "sliced".
    if sliced and (clean or hot or cool):
        return (1 if hot else 2 if cool else 3) if clean else (4 if hot else 5)
    if clean or hot or cool:
        return (6 if hot else 7 if cool else 9) if clean else (8 if hot else 10)
    if thing in game.toggleable and state.toggled >> thing & 1:
        return 11
    return 13 if sliced and thing in game.sliceable else 14


def _inside(game: Game, state: State, receptacle: int, sentences: tuple[str, ...]) -> str:
    name = game.receptacles[receptacle]
    if not game.openable >> receptacle & 1:
        sentence = sentences[2]
    elif state.opened >> receptacle & 1:
        sentence = sentences[0]
    else:
        return sentences[1].format(r=name)
    things = game.wording.listing(["a " + game.objects[thing] for thing in state.inside[receptacle]])
    return sentence.format(r=name, things=things)


def _around(game: Game, state: State, sentences: tuple[str, ...], *, whole_house: bool) -> str:
    rules, listing = game.wording.rules, game.wording.listing
    here = game.here[state.place]
    if here:
        places = listing([game.receptacles[receptacle] for receptacle in here])
        return sentences[0].format(facing=rules["look-variations"][0].format(places=places), floor=_floor(game, state))
    appliances = rules["list_appliances"]
    seen = [f"a {name}" for name, places in zip(game.receptacles, game.places_of, strict=True) for _ in places]
    # Upstream tells all receptacles in the introduction alone; a later look with none in reach says "nothing".
    if not whole_house or not seen:
        return sentences[1].format(appliances=appliances[1])
    return sentences[1].format(appliances=appliances[0].format(things=listing(seen)))


def _floor(game: Game, state: State) -> str:
    """Tells the objects here that were taken out of something here, once for each such receptacle."""
    sentences = game.wording.rules["list_objects_on_the_floor"]
    fallen = [
        "a " + game.objects[thing]
        for thing in state.lying[state.place]
        for receptacle in game.here[state.place]
        if (thing, receptacle) in state.left
    ]
    return sentences[0].format(things=game.wording.listing(fallen)) if fallen else sentences[1]
