"""One game, read and indexed: everything that never changes while it is played."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from skillc_gym.alfworld.domain import domain_actions
from skillc_gym.alfworld.goals import Goal, Indexing, compile_goal
from skillc_gym.alfworld.pddl import Problem, parse_problem
from skillc_gym.alfworld.state import State
from skillc_gym.alfworld.tasks import task_type_of
from skillc_gym.alfworld.wording import Wording, goal_of, read_wording
from skillc_gym.errors import InvalidGameError

__all__ = ["Game"]

Joined = tuple[tuple[int, ...], ...]

_KNIVES = ("knifetype", "butterknifetype")
_SINKS = ("sinktype", "sinkbasintype")


@dataclass(frozen=True, eq=False)
class Game:
    """A parsed game, immutable and shared by all environments of a process.

    Places, receptacles and objects are numbered in the order in which the game lists them.

    Attributes:
        task_id: ``<split>/<task folder>/<trial folder>``.
        task_type: Full task type.
        task: The sentence "Your task is to: ...".
        walkthrough: Commands that win from the start, as the file gives them.
        wording: The game's words.
        actions: Actions that the game has.
        places: Name of each place.
        receptacles: Name of each receptacle.
        objects: Name of each object.
        places_of: Per receptacle, the places from which it is reached (one, in real games).
        here: Per place, the receptacles within reach.
        openable: Receptacles that open and close, as bits.
        accepts: Per receptacle, the objects that may be put there.
        pickupable: Objects that can be taken.
        toggleable: Objects that can be switched.
        sliceable: Objects that can be sliced.
        knives: Objects that slice.
        treats: "cleanobject", "heatobject", "coolobject" -> receptacles that do it and objects that it can be done to.
        holders: Objects that count as containers -> the names of what is inside, which never changes.
        goal_test: The goal, as a test of a state.
        start: The first state.
    """

    task_id: str
    task_type: str
    task: str
    walkthrough: tuple[str, ...]
    wording: Wording
    actions: frozenset[str]
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
    cache: dict[Any, Any] = field(default_factory=dict, repr=False)

    @property
    def goal(self) -> str:
        """The task without its prefix "Your task is to:"."""
        return goal_of(self.task)

    @classmethod
    def parse(cls, task_id: str, raw: Mapping[str, Any]) -> Game:
        """Reads a game from the content of its file.

        Args:
            task_id: ``<split>/<task folder>/<trial folder>``.
            raw: The file's JSON: pddl_domain, grammar, pddl_problem, walkthrough.

        Raises:
            InvalidGameError: If the content is not an ALFWorld game that the native engine plays; names the task.
        """
        try:
            return _parse(task_id, raw)
        except InvalidGameError as error:
            raise InvalidGameError(f"Game {task_id!r} cannot be read: {error}") from error

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

    @functools.cached_property
    def commands(self) -> tuple[str, ...]:
        """Every command that can become admissible, sorted; also some that no state of the game may ever admit."""
        words, objects, receptacles = self.wording.commands, enumerate(self.objects), enumerate(self.receptacles)
        found = {words[name] for name in ("inventory", "look", "help") if name in words} | self.routes.keys()
        for receptacle, name in receptacles:
            openable = self.openable >> receptacle & 1
            found.update(words[action].format(r=name) for action in ("openobject", "closeobject") if openable)
            found.add(words["examinereceptacle"].format(r=name))
            found |= self._handlings(receptacle)
        for thing, name in objects:
            found.add(words["examineobject"].format(o=name))
            found.update([words["toggleobject"].format(o=name)] if thing in self.toggleable else [])
            for knife in self.knives if thing in self.sliceable else ():
                found.add(words["sliceobject"].format(co=name, ko=self.objects[knife]))
        return tuple(sorted(found))

    def _handlings(self, receptacle: int) -> set[str]:
        """Commands that join an object to a receptacle."""
        words = self.wording.commands
        things = {
            "pickupobject": self.pickupable & self.accepts[receptacle] | {*self.start.inside[receptacle]},
            "putobject": self.pickupable & self.accepts[receptacle],
        }
        for action, (receptacles, objects) in self.treats.items():
            things[action] = self.pickupable & objects if receptacle in receptacles else frozenset()
        name = self.receptacles[receptacle]
        return {words[act].format(o=self.objects[thing], r=name) for act, some in things.items() for thing in some}


def _parse(task_id: str, raw: Mapping[str, Any]) -> Game:
    text = {key: _text(raw, key) for key in ("pddl_domain", "grammar", "pddl_problem")}
    actions = domain_actions(text["pddl_domain"])
    wording, task = read_wording(text["grammar"])
    if missing := actions - wording.commands.keys():
        raise InvalidGameError(f"its grammar has no words for the actions {sorted(missing)}.")
    problem = parse_problem(text["pddl_problem"])
    return _Tables(problem).game(
        task_id=task_id,
        task_type=task_type_of(task_id),
        task=task,
        walkthrough=_walkthrough(raw),
        wording=wording,
        actions=actions,
    )


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


class _Tables:
    """Numbers the things of a problem and gathers what is known of each."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        known = {name for facts in problem.facts.values() for names in facts for name in names}
        self.names = _display_names(known)
        self.places = self._numbered("location", known)
        self.receptacles = self._numbered("receptacle", known)
        self.objects = self._numbered("object", known)

    def game(self, **words: Any) -> Game:
        places_of = self._pairs("receptacleatlocation", self.receptacles, self.places)
        return Game(
            **words,
            places=self._named(self.places),
            receptacles=self._named(self.receptacles),
            objects=self._named(self.objects),
            places_of=places_of,
            here=_inverted(places_of, len(self.places)),
            openable=_bits(self._having("openable", self.receptacles)),
            accepts=self._accepts(),
            pickupable=self._having("pickupable", self.objects),
            toggleable=self._having("toggleable", self.objects),
            sliceable=self._having("sliceable", self.objects),
            knives=self._of_type("objecttype", self.objects, _KNIVES),
            treats=self._treats(),
            holders=self._holders(),
            goal_test=compile_goal(self.problem, Indexing(self.places, self.receptacles, self.objects)),
            start=self._start(),
        )

    def _numbered(self, kind: str, known: Iterable[str]) -> dict[str, int]:
        return {name: index for index, name in enumerate(sorted(n for n in known if self.problem.types[n] == kind))}

    def _named(self, index: Iterable[str]) -> tuple[str, ...]:
        return tuple(self.names[name] for name in index)

    def _having(self, predicate: str, index: Mapping[str, int]) -> frozenset[int]:
        return frozenset(index[names[0]] for names in self.problem.holding(predicate) if names[0] in index)

    def _of_type(self, predicate: str, index: Mapping[str, int], kinds: tuple[str, ...]) -> frozenset[int]:
        facts = self.problem.holding(predicate)
        return frozenset(index[name] for name, kind in facts if kind in kinds and name in index)

    def _pairs(self, predicate: str, first: Mapping[str, int], second: Mapping[str, int]) -> Joined:
        """Per thing of the first kind, the things of the second kind that a fact joins it to, ascending."""
        joined: list[list[int]] = [[] for _ in first]
        for names in self.problem.holding(predicate):
            if len(names) != 2 or names[0] not in first or names[1] not in second:
                raise InvalidGameError(f"its fact {predicate}{names} joins things of other types than ALFWorld's.")
            joined[first[names[0]]].append(second[names[1]])
        return tuple(tuple(sorted(others)) for others in joined)

    def _accepts(self) -> tuple[frozenset[int], ...]:
        objects_of: dict[str, set[int]] = {}
        for name, kind in self.problem.holding("objecttype"):
            if name in self.objects:
                objects_of.setdefault(kind, set()).add(self.objects[name])
        taken_by: dict[str, set[int]] = {}
        for holder, kind in self.problem.holding("cancontain"):
            taken_by.setdefault(holder, set()).update(objects_of.get(kind, ()))
        shared = {holder: frozenset(taken) for holder, taken in taken_by.items()}
        accepts = [frozenset[int]()] * len(self.receptacles)
        for name, kind in self.problem.holding("receptacletype"):
            if name in self.receptacles and kind in shared:
                index = self.receptacles[name]
                accepts[index] = accepts[index] | shared[kind] if accepts[index] else shared[kind]
        return tuple(accepts)

    def _treats(self) -> dict[str, tuple[frozenset[int], frozenset[int]]]:
        def treatment(kinds: tuple[str, ...], able: str) -> tuple[frozenset[int], frozenset[int]]:
            return self._of_type("receptacletype", self.receptacles, kinds), self._having(able, self.objects)

        return {
            "cleanobject": treatment(_SINKS, "cleanable"),
            "heatobject": treatment(("microwavetype",), "heatable"),
            "coolobject": treatment(("fridgetype",), "coolable"),
        }

    def _holders(self) -> dict[int, tuple[str, ...]]:
        inner = sorted(self.problem.holding("inreceptacleobject"))
        return {
            self.objects[holder]: tuple(self.names[name] for name, outer in inner if outer == holder and name != holder)
            for (holder,) in self.problem.holding("isreceptacleobject")
            if holder in self.objects
        }

    def _start(self) -> State:
        agents = [names for names in self.problem.holding("atlocation") if names[-1] in self.places]
        if len(agents) != 1:
            raise InvalidGameError(f"it has {len(agents)} agents with a place; exactly one was expected.")
        return State(
            place=self.places[agents[0][1]],
            held=self._held(agents[0][0]),
            opened=_bits(self._having("opened", self.receptacles)),
            inside=_inverted(self._pairs("inreceptacle", self.objects, self.receptacles), len(self.receptacles)),
            lying=_inverted(self._pairs("objectatlocation", self.objects, self.places), len(self.places)),
            left=frozenset(),
            clean=_bits(self._having("isclean", self.objects)),
            hot=_bits(self._having("ishot", self.objects)),
            cool=_bits(self._having("iscool", self.objects)),
            sliced=_bits(self._having("issliced", self.objects)),
            toggled=_bits(self._having("istoggled", self.objects)),
            lit=_bits(self._having("ison", self.objects)),
        )

    def _held(self, agent: str) -> int:
        held = [name for holder, name in self.problem.holding("holds") if holder == agent]
        if len(held) > 1 or bool(held) != ((agent,) in self.problem.holding("holdsany")):
            raise InvalidGameError("its agent starts with hands that are neither empty nor holding one object.")
        return self.objects[held[0]] if held else -1


def _display_names(ids: Iterable[str]) -> dict[str, str]:
    """Names things as players see them: counted per word, numbered from the highest down in the order of their ids."""
    ordered = sorted(ids)
    left = Counter(word for word in map(_word, ordered) if word)
    names = {}
    for name in ordered:
        if word := _word(name):
            names[name] = f"{word} {left[word]}"
            left[word] -= 1
        else:
            names[name] = f"{_readable(name)} "
    return names


def _word(name: str) -> str:
    word, bar, _ = name.partition("_bar_")
    return _readable(word + "basin" * ("basin" in name)) if bar else ""


def _readable(name: str) -> str:
    for written, meant in (("_minus_", "-"), ("_plus_", "+"), ("_dot_", "."), ("_comma_", ",")):
        name = name.replace(written, meant)
    return name


def _inverted(pairs: Joined, size: int) -> Joined:
    joined: list[list[int]] = [[] for _ in range(size)]
    for index, others in enumerate(pairs):
        for other in others:
            joined[other].append(index)
    return tuple(map(tuple, joined))


def _bits(indices: Iterable[int]) -> int:
    return sum(1 << index for index in set(indices))
