"""Writes a house as a game file in upstream's format: PDDL problem, walkthrough, task sentence, folder names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from skillc_gym.envs.alfworld.engine.grammar import grammar_text
from skillc_gym.envs.alfworld.engine.pddl import domain_text
from skillc_gym.envs.alfworld.engine.tables import display_names
from skillc_gym.envs.alfworld.experts.explorer import UNSAID
from skillc_gym.envs.alfworld.generate.catalogue import ABLE, CONTAINS, FIXED, LAMPS, TREATMENTS, Task
from skillc_gym.envs.alfworld.generate.house import House
from skillc_gym.envs.alfworld.tasks import FULL_NAMES

_SENTENCES = {
    "pick": ("put a {thing} in {place}.", "put some {thing} on {place}."),
    "look": ("look at {thing} under the {place}.", "examine the {thing} with the {place}."),
    "clean": ("put a clean {thing} in {place}.", "clean some {thing} and put it in {place}."),
    "heat": ("put a hot {thing} in {place}.", "heat some {thing} and put it in {place}."),
    "cool": ("put a cool {thing} in {place}.", "cool some {thing} and put it in {place}."),
    "pick2": ("put two {thing} in {place}.", "find two {thing} and put them in {place}."),
}


def sentences(task: Task, *, place_said: bool = True) -> tuple[str, ...]:
    """The ways to word a task; where its place is not said, it is put "in its place"."""
    said = place_said or task.kind == "look"
    words = {"thing": task.thing.lower(), "place": task.place.lower() if said else UNSAID}
    return tuple(sentence.format(**words) for sentence in _SENTENCES[task.kind])


def task_folder(house: House) -> str:
    """The name of the folder, as upstream names it: type, object, movable receptacle, place, scene."""
    task = house.task
    return f"{FULL_NAMES[task.kind]}-{task.thing}-None-{task.place}-{house.scene}"


class _Named(NamedTuple):
    """PDDL ids of a house's receptacles, objects and locations."""

    receptacles: tuple[str, ...]
    things: tuple[str, ...]
    locations: tuple[str, ...]


def game_file(house: House, sentence: str, rng: np.random.Generator) -> dict[str, Any]:
    """Returns the content of a ``game.tw-pddl``; ``rng`` decides how things of a kind are numbered."""
    named = _name(house, rng)
    return {
        "pddl_domain": domain_text(),
        "grammar": grammar_text(sentence),
        "pddl_problem": _problem(house, named),
        "walkthrough": _walkthrough(house, named),
        "solvable": True,
    }


def _name(house: House, rng: np.random.Generator) -> _Named:
    spots = _distinct(len(house.receptacles) + len(house.things), rng)
    ids = []
    for kind, spot in zip([*(r.kind for r in house.receptacles), *(t.kind for t in house.things)], spots, strict=True):
        basin = kind.endswith("Basin")
        ids.append("_bar_".join([kind.removesuffix("Basin"), *map(_coordinate, spot), *([kind] if basin else [])]))
    count = len(house.receptacles)
    locations = [
        f"loc_bar_{_whole(x)}_bar_{_whole(z)}_bar_{turn % 4}_bar_{15 * (tilt % 5)}"
        for x, z, turn, tilt in zip(range(house.locations), *rng.integers(-9, 10, (3, house.locations)), strict=True)
    ]
    return _Named(tuple(ids[:count]), tuple(ids[count:]), tuple(locations))


def _distinct(count: int, rng: np.random.Generator) -> list[tuple[float, float, float]]:
    """Distinct points of a room of some six by six metres, to the centimetre."""
    across = rng.permutation(600)[:count] / 100 - 3
    return [
        (float(x), float(y), float(z))
        for x, (y, z) in zip(across, rng.uniform((0, -3), (2, 3), (count, 2)), strict=True)
    ]


def _coordinate(value: float) -> str:
    whole, part = f"{abs(value):05.2f}".split(".")
    return f"_{'minus' if value < 0 else 'plus'}_{whole}_dot_{part}"


def _whole(value: int) -> str:
    return f"_minus_{-value}" if value < 0 else str(value)


# The problem -----------------------------------------------------------------------------------------------------


def _problem(house: House, named: _Named) -> str:
    declared = "\n  ".join(f"{name} - {kind}" for name, kind in _objects(house, named))
    facts = "\n  ".join(f"({fact})" for fact in sorted(set(_facts(house, named))))
    return (
        f"(define (problem generated)\n(:domain alfred)\n(:objects\n  {declared}\n)\n(:init\n  {facts}\n)\n"
        f"(:goal {_goal(house.task)})\n)\n"
    )


def _objects(house: House, named: _Named) -> list[tuple[str, str]]:
    things = sorted({thing.kind for thing in house.things})
    receptacles = sorted({receptacle.kind for receptacle in house.receptacles})
    return [
        ("agent1", "agent"),
        *((f"{kind}Type", "otype") for kind in things),
        *((f"{kind}Type", "rtype") for kind in receptacles),
        *((name, "object") for name in named.things),
        *((name, "receptacle") for name in named.receptacles),
        *((name, "location") for name in named.locations),
    ]


def _facts(house: House, named: _Named) -> list[str]:
    facts = [f"atLocation agent1 {named.locations[-1]}"]
    for receptacle, name in zip(house.receptacles, named.receptacles, strict=True):
        facts.append(f"receptacleType {name} {receptacle.kind}Type")
        facts.append(f"receptacleAtLocation {name} {named.locations[receptacle.location]}")
        facts += [f"openable {name}"] * receptacle.opens
    for thing, name in zip(house.things, named.things, strict=True):
        place = house.receptacles[thing.place]
        facts.append(f"objectType {name} {thing.kind}Type")
        facts.append(f"inReceptacle {name} {named.receptacles[thing.place]}")
        facts.append(f"objectAtLocation {name} {named.locations[place.location]}")
        if thing.kind not in FIXED:
            facts.append(f"{'toggleable' if thing.kind in LAMPS else 'pickupable'} {name}")
        facts += [f"{ability} {name}" for ability, kinds in ABLE.items() if thing.kind in kinds]
    things = {thing.kind for thing in house.things}
    for kind in {receptacle.kind for receptacle in house.receptacles}:
        facts += [f"canContain {kind}Type {inside}Type" for inside in things & CONTAINS[kind]]
    return facts


def _goal(task: Task) -> str:
    thing, place = f"{task.thing}Type", f"{task.place}Type"
    inside = f"(objectType ?o {thing}) (receptacleType ?r {place}) (inReceptacle ?o ?r)"
    if task.kind == "look":
        return (
            "(and (exists (?ot - object ?r - receptacle ?a - agent ?l - location) (and "
            f"(objectType ?ot {place}) (toggleable ?ot) (isToggled ?ot) (receptacleAtLocation ?r ?l) "
            "(atLocation ?a ?l) (inReceptacle ?ot ?r))) "
            f"(exists (?o - object ?a - agent) (and (objectType ?o {thing}) (holds ?a ?o))))"
        )
    if task.kind == "pick2":
        second = f"(not (= ?o ?o2)) (objectType ?o2 {thing}) (receptacleType ?r {place}) (inReceptacle ?o2 ?r)"
        return (
            "(and (exists (?r - receptacle) (exists (?o - object) (and "
            f"{inside} (exists (?o2 - object) (and {second}))))))"
        )
    treatment = TREATMENTS.get(task.kind)
    treated = f"({treatment.able} ?o) ({treatment.done} ?o) " if treatment else ""
    return f"(and (exists (?r - receptacle) (exists (?o - object) (and {treated}{inside}))))"


# The walkthrough -------------------------------------------------------------------------------------------------


class _Walk:
    """Writes down commands while keeping track of where the agent stands and what is open."""

    def __init__(self, house: House, places: Sequence[str]) -> None:
        self._house, self._places = house, places
        self._location = -1
        self._opened: set[int] = set()
        self.commands: list[str] = []

    def to(self, index: int) -> str:
        """Goes to a receptacle, unless the agent stands there; returns its name."""
        location = self._house.receptacles[index].location
        if location != self._location:
            self.commands.append(f"go to {self._places[index]}")
            self._location = location
        return self._places[index]

    def into(self, index: int) -> str:
        """Goes to a receptacle and opens it where that is needed; returns its name."""
        place = self.to(index)
        if self._house.receptacles[index].opens and index not in self._opened:
            self._opened.add(index)
            self.commands.append(f"open {place}")
        return place


def _walkthrough(house: House, named: _Named) -> list[str]:
    # The planner's format knows no case, and neither do the ids by which things are numbered.
    shown = display_names(name.lower() for name in (*named.receptacles, *named.things))
    things, task = [shown[name.lower()] for name in named.things], house.task
    walk = _Walk(house, [shown[name.lower()] for name in named.receptacles])
    kinds = [receptacle.kind for receptacle in house.receptacles]
    for number in range(task.wanted):
        source = walk.into(house.things[number].place)
        walk.commands.append(f"take {things[number]} from {source}")
        if task.kind == "look":
            walk.to(house.things[task.wanted].place)
            walk.commands.append(f"use {things[task.wanted]}")
            continue
        if task.kind in TREATMENTS:
            tool = walk.to(kinds.index(TREATMENTS[task.kind].tool))
            walk.commands.append(f"{task.kind} {things[number]} with {tool}")
        target = walk.into(kinds.index(task.place))
        walk.commands.append(f"move {things[number]} to {target}")
    return walk.commands
