"""One game, read and indexed: everything that never changes while it is played."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from skillc_gym.envs.alfworld.engine.goals import Goal, compile_goal
from skillc_gym.envs.alfworld.engine.pddl import cleaning_kinds, domain_actions, parse_problem
from skillc_gym.envs.alfworld.engine.tables import State, Tables, renamed, renumbered
from skillc_gym.envs.alfworld.engine.wording import Wording, goal_of, read_wording
from skillc_gym.envs.alfworld.tasks import task_type_of
from skillc_gym.errors import InvalidGameError

MAX_ANSWER = 32_768
MAX_COMMAND = 4_096
MAX_MESSAGE = 1_000
MAX_PAIRS = 50_000
"""Of an object and what something is done to it with; ALFWorld's games have some hundreds."""


@dataclass(frozen=True, eq=False)
class Game:
    """A parsed game, immutable and shared by all environments of a process.

    Places, receptacles and objects are numbered in the order in which the game lists them; the fields called so have
    their names.

    Attributes:
        task_id: ``<split>/<task folder>/<trial folder>``.
        task: The sentence "Your task is to: ...".
        walkthrough: Commands that win from the start, as the file gives them.
        actions: Actions that the game has.
        names: All names, in the order of the ids, with those that no player sees.
        places_of: Per receptacle, the places from which it is reached (one, in real games).
        here: Per place, the receptacles within reach.
        openable: Receptacles that open and close, as bits.
        accepts: Per receptacle, the objects that may be put there.
        knives: Objects that slice.
        treats: "cleanobject", "heatobject", "coolobject" -> receptacles that do it and objects that it can be done to.
        holders: Objects that count as containers -> the names of what is inside, which never changes.
        offers: What `skillc_gym.envs.alfworld.engine.surroundings` remembers.
        ways: What `ways_from` remembers.
    """

    task_id: str
    task_type: str
    task: str
    walkthrough: tuple[str, ...]
    wording: Wording
    actions: frozenset[str]
    names: tuple[str, ...]
    places: tuple[str, ...]
    receptacles: tuple[str, ...]
    objects: tuple[str, ...]
    places_of: tuple[tuple[int, ...], ...]
    here: tuple[tuple[int, ...], ...]
    openable: int
    accepts: tuple[frozenset[int], ...]
    pickupable: frozenset[int]
    toggleable: frozenset[int]
    sliceable: frozenset[int]
    knives: frozenset[int]
    treats: Mapping[str, tuple[frozenset[int], frozenset[int]]]
    holders: Mapping[int, tuple[str, ...]]
    goal_test: Goal
    start: State
    offers: dict[Any, Any] = field(default_factory=dict, repr=False, init=False)
    ways: dict[int, frozenset[str]] = field(default_factory=dict, repr=False, init=False)

    @property
    def goal(self) -> str:
        """The task without its prefix "Your task is to:"."""
        return goal_of(self.task)

    @classmethod
    def parse(cls, task_id: str, raw: Mapping[str, Any]) -> Game:
        """Reads a game from its file's JSON; InvalidGameError, naming the task, if the native engine cannot play it."""
        try:
            return _parse(task_id, raw)
        except InvalidGameError as error:
            raise InvalidGameError(f"Game {task_id!r} cannot be read: {_shortened(str(error))}") from error

    def renamed(self, seed: int) -> Game:
        """Returns the same game with its things numbered as a seed has it: upstream's ``domain_randomization``."""
        names = renumbered(self.names, seed)
        return replace(
            self,
            names=tuple(names[name] for name in self.names),
            places=tuple(names[name] for name in self.places),
            receptacles=tuple(names[name] for name in self.receptacles),
            objects=tuple(names[name] for name in self.objects),
            holders={thing: tuple(names[name] for name in inner) for thing, inner in self.holders.items()},
            walkthrough=tuple(renamed(command, names) for command in self.walkthrough),
        )

    @functools.cached_property
    def routes(self) -> dict[str, tuple[tuple[int, int], ...]]:
        """Command -> the receptacles and places that it may lead to."""
        template = self.wording.commands["gotolocation"]
        routes: dict[str, tuple[tuple[int, int], ...]] = {}
        for receptacle, places in enumerate(self.places_of):
            for place in places:
                command = template.format(r=self.receptacles[receptacle], lend=self.places[place])
                routes[command] = (*routes.get(command, ()), (receptacle, place))
        return routes

    def ways_from(self, place: int) -> frozenset[str]:
        """Returns the commands that lead from a place to another one."""
        if place not in self.ways:
            self.ways[place] = frozenset(
                command for command, ends in self.routes.items() if any(there != place for _, there in ends)
            )
        return self.ways[place]

    @functools.cached_property
    def commands(self) -> tuple[str, ...]:
        """Every command that can become admissible, sorted; also some that no state of the game may ever admit."""
        words = self.wording.commands
        found = {words[name] for name in ("inventory", "look", "help") if name in words} | self.routes.keys()
        for receptacle, name in enumerate(self.receptacles):
            if self.openable >> receptacle & 1:
                found.update(words[action].format(r=name) for action in ("openobject", "closeobject"))
            found.add(words["examinereceptacle"].format(r=name))
            found |= self._handlings(receptacle)
        for thing, name in enumerate(self.objects):
            found.add(words["examineobject"].format(o=name))
            if thing in self.toggleable:
                found.add(words["toggleobject"].format(o=name))
            for knife in self.knives if thing in self.sliceable else ():
                found.add(words["sliceobject"].format(co=name, ko=self.objects[knife]))
        return tuple(sorted(found))

    def _handlings(self, receptacle: int) -> set[str]:
        words = self.wording.commands
        handled = self.pickupable | ({self.start.held} - {-1})  # what is in hand at first need not be one to pick up
        things = {
            "pickupobject": self.pickupable & self.accepts[receptacle] | {*self.start.inside[receptacle]},
            "putobject": handled & self.accepts[receptacle],
        }
        for action, (receptacles, objects) in self.treats.items():
            things[action] = handled & objects if receptacle in receptacles else frozenset()
        name = self.receptacles[receptacle]
        return {words[act].format(o=self.objects[thing], r=name) for act, some in things.items() for thing in some}


def _parse(task_id: str, raw: Mapping[str, Any]) -> Game:
    text = {key: _text(raw, key) for key in ("pddl_domain", "grammar", "pddl_problem")}
    actions = domain_actions(text["pddl_domain"])
    # All games of a data set share domain and grammar but the task's sentence: both readers keep what they have read.
    wording, task = read_wording(text["grammar"])
    if missing := actions - wording.commands.keys():
        raise InvalidGameError(f"its grammar has no words for the actions {sorted(missing)}.")
    tables = Tables(parse_problem(text["pddl_problem"]), cleaning_kinds(text["pddl_domain"]))
    game = Game(
        task_id=task_id,
        task_type=task_type_of(task_id),
        task=task,
        walkthrough=_walkthrough(raw),
        wording=wording,
        actions=actions,
        goal_test=compile_goal(tables),
        **tables.all(),
    )
    _check_bounds(game)
    return game


def _check_bounds(game: Game) -> None:
    """Of what the game can say, and of what can be said to it."""
    words, names = game.wording, [*game.receptacles, *game.objects, *game.places]
    sentences = [*words.says.values(), *words.rules.values()]
    longest = max(len(one) for alternatives in sentences for one in alternatives)
    pairs = sum(map(len, game.accepts)) + sum(len(at) * len(of) for at, of in game.treats.values())
    if pairs + len(game.sliceable) * len(game.knives) > MAX_PAIRS:
        raise InvalidGameError(f"it has more than {MAX_PAIRS:,} things that can be done with two things.")
    listed = [*names, *(name for name, places in zip(game.receptacles, game.places_of, strict=True) for _ in places)]
    lists = sum(len(name) + len(words.separators[1]) + 2 for name in listed) + sum(map(len, words.separators))
    if (length := len(game.task) + 3 * (longest + lists)) > MAX_ANSWER:
        raise InvalidGameError(f"its answers may have up to {length:,} characters; at most {MAX_ANSWER:,} are allowed.")
    templates = max(map(len, words.commands.values()))
    if (length := templates + 2 * max(map(len, names), default=0)) > MAX_COMMAND:
        raise InvalidGameError(f"its commands may have up to {length:,} characters; at most {MAX_COMMAND:,} are taken.")


def _shortened(message: str) -> str:
    """Cuts out the middle of a message that quotes too much of a file; advice stands at its end."""
    half = MAX_MESSAGE // 2
    return message if len(message) <= MAX_MESSAGE else f"{message[:half]} ... {message[-half:]}"


def _text(raw: Mapping[str, Any], key: str) -> str:
    value = raw.get(key) if isinstance(raw, Mapping) else None
    if not isinstance(value, str):
        raise InvalidGameError(f"its content has no text under {key!r}; found {type(value).__name__}.")
    return value


def _walkthrough(raw: Mapping[str, Any]) -> tuple[str, ...]:
    steps = raw.get("walkthrough") or ()
    if not isinstance(steps, list | tuple) or not all(isinstance(step, str) for step in steps):
        raise InvalidGameError("its walkthrough is not a list of commands.")
    return tuple(steps)
