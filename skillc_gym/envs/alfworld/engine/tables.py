"""The things of a problem: what they are called, their numbers, what is known of each, and what can change of them."""

from __future__ import annotations

import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from skillc_gym.envs.alfworld.engine.pddl import Problem, predicates
from skillc_gym.errors import InvalidGameError

# Every run of letters and digits is matched as a whole, so that no place in it is tried twice.
_NAMED = re.compile(r"(\d*)(\w+)( \d+)?")


def display_names(ids: Iterable[str]) -> dict[str, str]:
    """Names things by word and number, from the highest down in the order of their ids, which the result keeps.

    What is no thing of the house (agents, types) is called by its id and a blank, as upstream does.
    """
    # Ids hold coordinates, so that their order, and with it who is "mug 1", looks random to a player.
    ordered = sorted(ids)
    names = [_word(name) + " 0" if _word(name) else sys.intern(_readable(name) + " ") for name in ordered]
    return dict(zip(ordered, _numbered(names), strict=True))


def renumbered(names: Sequence[str], seed: int) -> dict[str, str]:
    """Numbers things, named in the order of their ids, as upstream does under ``domain_randomization``: shuffled.

    The shuffle is Python's own, so that upstream numbers alike after ``random.seed(seed)``.
    """
    shuffled = list(names)
    random.Random(seed).shuffle(shuffled)
    return dict(zip(shuffled, _numbered(shuffled), strict=True))


def renamed(text: str, names: dict[str, str]) -> str:
    """Replaces the names in a command."""

    def new(found: re.Match[str]) -> str:
        digits, word, number = found.groups(default="")
        name = word + number
        return digits + (name if word.isdecimal() else names.get(name, name))

    return _NAMED.sub(new, text)


def numbered_anyhow(commands: Iterable[str], names: Sequence[str]) -> set[str]:
    """Commands with each name in them replaced by any of its word: all that some shuffle of `renumbered` may say."""
    alike: dict[str, list[str]] = defaultdict(list)
    for name in names:
        alike[name.rpartition(" ")[0]].append(name)
    found_name = re.compile(rf"\b({'|'.join(map(re.escape, names))})\b")
    # Every second part is a name. Its word alone is kept, so that commands which differ in numbers are one template.
    parted = (found_name.split(command) for command in commands)
    templates = {(*(part.rpartition(" ")[0] if n % 2 else part for n, part in enumerate(parts)),) for parts in parted}
    choices = (product(*(alike[part] if n % 2 else [part] for n, part in enumerate(parts))) for parts in templates)
    return {"".join(parts) for chosen in choices for parts in chosen}


def _numbered(names: Sequence[str]) -> list[str]:
    words = [name.rpartition(" ")[0] if name[-1] != " " else "" for name in names]
    left = Counter(words)
    numbered = []
    for word, name in zip(words, names, strict=True):
        numbered.append(f"{word} {left[word]}" if word else name)
        left[word] -= 1
    return numbered


def _word(name: str) -> str:
    word, bar, _ = name.partition("_bar_")
    return _readable(word + "basin" * ("basin" in name)) if bar else ""


def _readable(name: str) -> str:
    for written, meant in (("_minus_", "-"), ("_plus_", "+"), ("_dot_", "."), ("_comma_", ",")):
        name = name.replace(written, meant)
    return name


Joined = tuple[tuple[int, ...], ...]
"""Per thing of one kind, things of another kind, ascending."""

MAX_THINGS = 1_000
"""ALFWorld's largest game has 171."""
_KNIVES = ("knifetype", "butterknifetype")


class State(NamedTuple):
    """A moment of a game: cheap to keep, compare and pickle.

    Places, receptacles and objects are indices into the game's tables; a set of them (``opened`` receptacles, ``clean``
    objects and so on) is an int with one bit per index.

    Attributes:
        held: The object in the agent's hand, -1 for none.
        inside: Per receptacle, the objects in or on it, ascending.
        lying: Per place, the objects that count as being at it, ascending.
        left: Pairs (object, receptacle) that were taken apart and not put together since.
        toggled: Objects that were ever switched; those that are on now are ``lit``.
    """

    place: int
    held: int
    opened: int
    inside: Joined
    # In PDDL an object can be in a receptacle and at no place, or the other way round: two facts, so two tables.
    lying: Joined
    left: frozenset[tuple[int, int]]
    clean: int
    hot: int
    cool: int
    sliced: int
    toggled: int
    lit: int


class Tables:
    """Numbers the things of a problem, from PDDL name to index, and gathers what is known of each.

    Things are cleaned at receptacles of the types ``cleaning``.
    """

    def __init__(self, problem: Problem, cleaning: tuple[str, ...] = ("sinktype", "sinkbasintype")) -> None:
        self.problem = problem
        self._cleaning = cleaning
        _check_facts(problem)
        # Only what a first fact mentions gets a number, as with upstream: a declared object without any is nowhere.
        known = {name for facts in problem.facts.values() for names in facts for name in names}
        self.names = display_names(known)
        self.places = self._numbered("location", known)
        self.receptacles = self._numbered("receptacle", known)
        self.objects = self._numbered("object", known)
        things = len(self.places) + len(self.receptacles) + len(self.objects)
        if things > MAX_THINGS:
            raise InvalidGameError(f"it has {things:,} places, receptacles and objects; at most {MAX_THINGS:,} fit.")

    def all(self) -> dict[str, Any]:
        """Returns the tables of a `Game`, by the names of its attributes."""
        places_of = self._pairs("receptacleatlocation", self.receptacles, self.places)
        return {
            "names": tuple(self.names.values()),
            "places": self._named(self.places),
            "receptacles": self._named(self.receptacles),
            "objects": self._named(self.objects),
            "places_of": places_of,
            "here": _inverted(places_of, len(self.places)),
            "openable": self._bits("openable", self.receptacles),
            "accepts": self._accepts(),
            "pickupable": self._having("pickupable", self.objects),
            "toggleable": self._having("toggleable", self.objects),
            "sliceable": self._having("sliceable", self.objects),
            "knives": self._of_type("objecttype", self.objects, _KNIVES),
            "treats": self._treats(),
            "holders": self._holders(),
            "start": self._start(),
        }

    def _numbered(self, kind: str, known: Iterable[str]) -> dict[str, int]:
        return {name: index for index, name in enumerate(sorted(n for n in known if self.problem.types[n] == kind))}

    def _named(self, index: Iterable[str]) -> tuple[str, ...]:
        return tuple(self.names[name] for name in index)

    def _having(self, predicate: str, index: Mapping[str, int]) -> frozenset[int]:
        return frozenset(index[names[0]] for names in self.problem.holding(predicate) if names[0] in index)

    def _bits(self, predicate: str, index: Mapping[str, int]) -> int:
        return sum(1 << thing for thing in self._having(predicate, index))

    def _of_type(self, predicate: str, index: Mapping[str, int], kinds: tuple[str, ...]) -> frozenset[int]:
        facts = self.problem.holding(predicate)
        return frozenset(index[name] for name, kind in facts if kind in kinds and name in index)

    def _pairs(self, predicate: str, first: Mapping[str, int], second: Mapping[str, int]) -> Joined:
        """Per thing of the first kind, the things of the second kind that a fact joins it to, ascending."""
        joined: list[list[int]] = [[] for _ in first]
        for names in self.problem.holding(predicate):
            if names[0] not in first or names[1] not in second:
                raise InvalidGameError(f"its fact {predicate}{names} joins things of other types than ALFWorld's.")
            joined[first[names[0]]].append(second[names[1]])
        return tuple(tuple(sorted(others)) for others in joined)

    def _accepts(self) -> tuple[frozenset[int], ...]:
        objects_of: dict[str, set[int]] = defaultdict(set)
        for name, kind in self.problem.holding("objecttype"):
            if name in self.objects:
                objects_of[kind].add(self.objects[name])
        taken_by: dict[str, set[int]] = defaultdict(set)
        for holder, kind in self.problem.holding("cancontain"):
            taken_by[holder] |= objects_of[kind]
        shared = {holder: frozenset(taken) for holder, taken in taken_by.items()}
        # canContain joins kinds, thousands of pairs of things in all; receptacles of a kind share one set.
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
            "cleanobject": treatment(self._cleaning, "cleanable"),
            "heatobject": treatment(("microwavetype",), "heatable"),
            "coolobject": treatment(("fridgetype",), "coolable"),
        }

    def _holders(self) -> dict[int, tuple[str, ...]]:
        # Objects in objects ("a mug in a bowl") are told when they are examined, and never move.
        inner: dict[str, list[str]] = defaultdict(list)
        for name, outer in sorted(self.problem.holding("inreceptacleobject")):
            if name != outer:
                inner[outer].append(self.names[name])
        return {
            self.objects[holder]: tuple(inner[holder])
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
            opened=self._bits("opened", self.receptacles),
            inside=_inverted(self._pairs("inreceptacle", self.objects, self.receptacles), len(self.receptacles)),
            lying=_inverted(self._pairs("objectatlocation", self.objects, self.places), len(self.places)),
            left=frozenset(),
            clean=self._bits("isclean", self.objects),
            hot=self._bits("ishot", self.objects),
            cool=self._bits("iscool", self.objects),
            sliced=self._bits("issliced", self.objects),
            toggled=self._bits("istoggled", self.objects),
            lit=self._bits("ison", self.objects),
        )

    def _held(self, agent: str) -> int:
        held = [name for holder, name in self.problem.holding("holds") if holder == agent]
        # holds and holdsAny are two facts in PDDL; where they disagree, no state of ours means the same.
        if len(held) > 1 or bool(held) != ((agent,) in self.problem.holding("holdsany")):
            raise InvalidGameError("its agent starts with hands that are neither empty nor holding one object.")
        return self.objects[held[0]] if held else -1


def _check_facts(problem: Problem) -> None:
    for predicate, size in predicates().items():
        for names in problem.holding(predicate):
            if len(names) != size:
                raise InvalidGameError(f"its fact {(predicate, *names)} joins {len(names)} things instead of {size}.")


def _inverted(pairs: Joined, size: int) -> Joined:
    joined: list[list[int]] = [[] for _ in range(size)]
    for index, others in enumerate(pairs):
        for other in others:
            joined[other].append(index)
    return tuple(map(tuple, joined))
