"""An omniscient expert: the shortest plan from any state of a game, by A* over the game's own states.

Its plans prove games: one that it wins can be won, and upstream says so too.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from skillc_gym.envs.alfworld.data.game_set import GameSet
from skillc_gym.envs.alfworld.engine.game import Game
from skillc_gym.envs.alfworld.engine.tables import State
from skillc_gym.envs.alfworld.engine.world import World
from skillc_gym.envs.alfworld.experts.explorer import ParsedGoal, parse_goal
from skillc_gym.envs.alfworld.tasks import SHORT_NAMES, named_kinds
from skillc_gym.errors import ConfigError, DeadEndError, InvalidGameError

if TYPE_CHECKING:
    from skillc_gym.envs.alfworld.engine.textworld import UpstreamWorld

MAX_EXPANSIONS = 200_000
_TREATMENTS = {"clean": "cleanobject", "heat": "heatobject", "cool": "coolobject"}


class Planner:
    """Plans in one game; it knows where everything is.

    ConfigError if neither the task's folder nor its sentence has the form of ALFWorld's.
    """

    def __init__(self, game: Game) -> None:
        goal = _wanted(game)
        self.game = game
        self.kind = SHORT_NAMES[game.task_type]
        self.things = _of_kind(game.objects, goal.thing)
        self.lamps = _of_kind(game.objects, goal.place) if self.kind == "look" else frozenset()
        self.targets = _of_kind(game.receptacles, goal.place) | _of_kind(game.receptacles, goal.place + "basin")
        self.treatment = _TREATMENTS.get(self.kind)
        self.tools = game.treats[self.treatment][0] if self.treatment else frozenset()
        self._world = World(game)

    def plan(self, state: State | None = None) -> tuple[str, ...]:
        """Returns a shortest sequence of commands that wins from a state, by default the start; none if the goal holds.

        Among plans of equal length the choice is deterministic. DeadEndError if nothing wins, InvalidGameError if it
        takes too long to tell.
        """
        start = self.game.start if state is None else state
        self._require_a_place(start)
        order = itertools.count()
        frontier: list[tuple[int, int, int, State]] = [(self.steps_at_least(start), 0, next(order), start)]
        came: dict[State, tuple[State, str]] = {}
        steps = {start: 0}
        for _ in range(MAX_EXPANSIONS):
            if not frontier:
                raise DeadEndError(f"Nothing wins the game {self.game.task_id!r} from this state any more.")
            _, negative, _, here = heapq.heappop(frontier)
            # An entry that a shorter way has overtaken: the heap cannot be told, so it is passed over here.
            if -negative > steps[here]:
                continue
            self._world.restore(here)
            if self._world.won:
                return _commands(came, here)
            for command, there in self._successors(here):
                cost = steps[here] + 1
                if cost < steps.get(there, MAX_EXPANSIONS):
                    steps[there], came[there] = cost, (here, command)
                    heapq.heappush(frontier, (cost + self.steps_at_least(there), -cost, next(order), there))
        among = f"from this state was found among {MAX_EXPANSIONS:,} states"
        raise InvalidGameError(f"No plan that wins the game {self.game.task_id!r} {among}.")

    def _require_a_place(self, state: State) -> None:
        """DeadEndError for a thing in hand that helps nobody and fits nowhere: trying every way would take long."""
        stuck = state.held >= 0 and state.held not in self.things
        self._world.restore(state)
        if stuck and not self._world.won and not any(state.held in fitting for fitting in self.game.accepts):
            raise DeadEndError(f"Nothing wins the game {self.game.task_id!r} any more: what is in hand fits nowhere.")

    def steps_at_least(self, state: State) -> int:
        """A lower bound of the steps that are left, the heuristic of A*.

        It never overestimates, so that the first plan found is a shortest one. Takes, treatments and puts are counted
        for each thing that has to be brought, openings where a door is shut, ways where two ends share no place; of
        things, sources, tools and targets the cheapest; and for a second thing what one step may do for both is taken
        off again.
        """
        if self.kind == "look":
            return self._steps_of_look(state)
        missing = 2 if self.kind == "pick2" else 1
        bounds = (self._steps_to_fill(state, target, missing) for target in self.targets)
        hand = state.held >= 0 and state.held not in self.things
        return min(bounds, default=0) + hand

    # Lower bounds ------------------------------------------------------------------------------------------------

    def _steps_to_fill(self, state: State, target: int, missing: int) -> int:
        """Takes, treatments, puts and the ways between them; a way is left out where it might not be needed."""
        costs = sorted(self._steps_to_bring(state, thing, target) for thing in self.things)[:missing]
        bringing = sum(costs)
        in_two = not self.things.isdisjoint(state.inside[target])
        closed = bool(bringing) and not in_two and self._closed(state, target)
        # Two things share one step at most, a way or an opening of their source; both where nobody has to come back.
        shared = 0 if missing == 1 else 1 + self._lie_together(state, target)
        return max(0, bringing - shared) + closed

    def _lie_together(self, state: State, target: int) -> bool:
        """Whether two of the things lie behind one shut door that is within reach of the target."""
        near = {receptacle for place in self.game.places_of[target] for receptacle in self.game.here[place]}
        shut = (state.inside[receptacle] for receptacle in near if self._closed(state, receptacle))
        return any(len(self.things.intersection(inside)) > 1 for inside in shut)

    def _steps_to_bring(self, state: State, thing: int, target: int) -> int:
        untreated = not self._treated(state, thing)
        sources = self._sources(state, thing)
        if target in sources and not untreated:
            return 0
        if state.held == thing:
            steps, ends = 0, {state.place}
        elif sources:
            steps = 1 + min(self._way(state.place, source) + self._closed(state, source) for source in sources)
            ends = {place for source in sources for place in self.game.places_of[source]}
        else:
            return MAX_EXPANSIONS
        if untreated:
            steps += 1 + min((self._way(place, tool) for tool in self.tools for place in ends), default=MAX_EXPANSIONS)
            ends = {place for tool in self.tools for place in self.game.places_of[tool]}
        # Some things are in two receptacles at once, and stay in the other one when they are taken.
        if target in sources and (state.held == thing or len(sources) > 1):
            return steps
        return steps + 1 + min((self._way(place, target) for place in ends), default=MAX_EXPANSIONS)

    def _steps_of_look(self, state: State) -> int:
        lit = any(state.toggled >> lamp & 1 for lamp in self.lamps)
        if state.held in self.things:
            return int(not lit)
        sources = [source for thing in self.things for source in self._sources(state, thing)]
        takes = (1 + self._way(state.place, where) + self._closed(state, where) for where in sources)
        return min(takes, default=0) + (not lit) + (state.held >= 0)

    def _treated(self, state: State, thing: int) -> bool:
        flags = {"clean": state.clean, "heat": state.hot, "cool": state.cool}.get(self.kind)
        return flags is None or bool(flags >> thing & 1)

    def _way(self, place: int, receptacle: int) -> int:
        return int(place not in self.game.places_of[receptacle])

    def _closed(self, state: State, receptacle: int) -> int:
        return int(self.game.openable >> receptacle & 1 and not state.opened >> receptacle & 1)

    def _sources(self, state: State, thing: int) -> list[int]:
        return [receptacle for receptacle, inside in enumerate(state.inside) if thing in inside]

    # Successors --------------------------------------------------------------------------------------------------

    def _successors(self, state: State) -> Iterator[tuple[str, State]]:
        effects = self._world.effects
        wanted = [command for command, (action, thing, _) in effects.items() if self._serves(action, thing)]
        for command in [*wanted, *self._ways(state)]:
            self._world.restore(state)
            self._world.step(command)
            yield command, self._world.state

    def _serves(self, action: str, thing: int) -> bool:
        if action in ("pickupobject", self.treatment):
            return thing in self.things
        if action == "toggleobject":
            return thing in self.lamps
        return action in ("putobject", "openobject")

    def _ways(self, state: State) -> Iterator[str]:
        """Ways to the receptacles that matter now; with something unwanted in hand, any may."""
        burdened = state.held >= 0 and state.held not in self.things
        wanted = {*self.targets, *self.tools}
        for thing in (*self.things, *self.lamps):
            wanted.update(self._sources(state, thing))
        for command, ends in self.game.routes.items():
            if any(place != state.place and (burdened or receptacle in wanted) for receptacle, place in ends):
                yield command


def _wanted(game: Game) -> ParsedGoal:
    """By the name of the task's folder, since people word sentences as they like; else by the sentence."""
    kinds = named_kinds(game.task_id)
    return ParsedGoal(*kinds) if kinds else parse_goal(game.task)


def _of_kind(names: tuple[str, ...], kind: str) -> frozenset[int]:
    return frozenset(index for index, name in enumerate(names) if name.rsplit(" ", 1)[0] == kind)


def _commands(came: dict[State, tuple[State, str]], last: State) -> tuple[str, ...]:
    commands: list[str] = []
    while last in came:
        last, command = came[last]
        commands.append(command)
    return tuple(reversed(commands))


def shortest_plan(env: Any) -> tuple[str, ...]:
    """Returns a shortest plan from where an environment with the native engine stands; ConfigError for another one."""
    engine = getattr(env.unwrapped, "_engine", None)
    if not isinstance(engine, World):
        raise ConfigError("A plan needs skillc/ALFWorld-v0 with engine='native', after reset().")
    return Planner(engine.game).plan(engine.state)


def proved_by_planner(games: GameSet) -> list[int]:
    """Has the planner plan every game and plays its plans; their lengths, or InvalidGameError for one not won."""
    return [_planned(games.load(task_id)) for task_id in games.task_ids]


def _planned(game: Game) -> int:
    plan = Planner(game).plan()
    if not plan or not _wins(plan, World(game)):
        raise InvalidGameError(f"The planner's plan does not win {game.task_id}: {', '.join(plan) or 'won at once'}.")
    return len(plan)


def _wins(plan: Sequence[str], world: World | UpstreamWorld) -> bool:
    world.reset()
    return all(world.step(command)[1] for command in plan) and world.won


def proved_by_upstream(games: GameSet, count: int) -> int:
    """Plays the planner's plans in upstream, in games evenly drawn by a fixed seed.

    Returns:
        How many were played; InvalidGameError for one not won, ConfigError for a negative ``count``.
    """
    from skillc_gym.envs.alfworld.engine.textworld import UpstreamProcess, UpstreamWorld

    if count < 0:
        raise ConfigError(f"The number of games to play must be at least 0, got {count}.")
    order = np.random.default_rng(0).permutation(len(games.task_ids))[:count]
    names = [games.task_ids[index] for index in sorted(order.tolist())]
    with contextlib.closing(UpstreamProcess(cached=True)) as process:
        for name in names:
            plan = Planner(games.load(name)).plan()
            if not _wins(plan, UpstreamWorld(process, games.raw(name))):
                raise InvalidGameError(f"Upstream does not find {name} won by: {', '.join(plan)}.")
    return len(names)
