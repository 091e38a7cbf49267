"""What can be done: the admissible commands at a place, and the effect behind each."""

from __future__ import annotations

from typing import NamedTuple

from skillc_gym.envs.alfworld.engine.game import Game
from skillc_gym.envs.alfworld.engine.state import State

__all__ = ["Effect", "View", "view_of"]

CACHED_VIEWS = 256
"""How many views a game keeps; they are made again when they are needed again."""

Effect = tuple[str, int, int]
"""Action and the indices of its two things, -1 where it has fewer."""


class View(NamedTuple):
    """What can be done at some place in some state of its surroundings.

    Attributes:
        commands: The admissible commands, sorted.
        effects: Command -> what it does, for all commands but the ways to other places.
    """

    commands: tuple[str, ...]
    effects: dict[str, Effect]


def view_of(game: Game, state: State) -> View:
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
    cache: dict[object, View] = game.views
    view = cache.get(key)
    if view is None:
        if len(cache) >= CACHED_VIEWS:
            # Environments of several threads share the cache: an order of use would need a lock at every step.
            cache.clear()
        view = cache[key] = _Offers(game, state).view(with_knife)
    return view


class _Offers:
    """Gathers the effects that a state allows."""

    def __init__(self, game: Game, state: State) -> None:
        self._game = game
        self._state = state
        self._effects: dict[str, Effect] = {}

    def view(self, with_knife: bool) -> View:
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
        return View(tuple(sorted({*self._effects, *game.ways_from(state.place)})), self._effects)

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
