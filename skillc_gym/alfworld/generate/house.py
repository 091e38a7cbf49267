"""Samples houses: the receptacles of a scene, a task that can be done there, and objects that may lie there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from skillc_gym.alfworld.generate.catalogue import ABLE, CONTAINS, LAMPS, ROOMS
from skillc_gym.alfworld.generate.sizes import SIZES, Size, size_named

__all__ = ["ROOMS_OF", "SCENES", "House", "Receptacle", "Task", "Thing", "layout", "sample_house", "scene_number"]

Choice = TypeVar("Choice")

ROOMS_OF: dict[str, tuple[str, ...]] = {
    "pick": ("kitchen", "living room", "bedroom", "bathroom"),
    "look": ("living room", "bedroom"),
    "clean": ("kitchen", "bathroom"),
    "heat": ("kitchen",),
    "cool": ("kitchen",),
    "pick2": ("kitchen", "living room", "bedroom", "bathroom"),
}
"""Rooms in which a task type can be set."""
SCENES = 25
"""How many scenes of a kind of room training and seen validation have by default, as ALFWorld has."""
_UNSEEN = range(25, 30)

_CORE = {
    "kitchen": ("CounterTop", "SinkBasin", "Microwave", "Fridge", "Cabinet"),
    "living room": ("Sofa", "SideTable", "CoffeeTable", "Drawer"),
    "bedroom": ("Bed", "Desk", "Drawer", "SideTable"),
    "bathroom": ("SinkBasin", "Toilet", "CounterTop", "Cabinet"),
}
_TOOL_PLACES = {"heat": "Microwave", "cool": "Fridge", "clean": "SinkBasin"}
_ABILITY = {"heat": "heatable", "cool": "coolable", "clean": "cleanable"}
_SHARED_LOCATION = 0.15


@dataclass(frozen=True)
class Receptacle:
    """A receptacle and the number of the location from which it is reached."""

    kind: str
    location: int


@dataclass(frozen=True)
class Thing:
    """An object and the index of the receptacle it lies in."""

    kind: str
    place: int


@dataclass(frozen=True)
class Task:
    """What is wanted: kinds of the object and of the receptacle (or lamp), and how many objects."""

    kind: str
    thing: str
    place: str

    @property
    def wanted(self) -> int:
        """Number of objects that have to be brought."""
        return 2 if self.kind == "pick2" else 1


@dataclass(frozen=True)
class House:
    """A house with a task; the agent starts at a location of its own, the last one."""

    room: str
    scene: int
    receptacles: tuple[Receptacle, ...]
    things: tuple[Thing, ...]
    task: Task

    @property
    def locations(self) -> int:
        """Number of locations, the start included."""
        return 2 + max(receptacle.location for receptacle in self.receptacles)


def scene_number(room: str, index: int) -> int:
    """The number of a scene: ALFWorld's for its thirty of a kind of room, numbers of our own beyond them."""
    first = ROOMS[room].first_scene
    return first + index if index < 30 else 1000 * first + index


def _scene_index(scenes: int, unseen: bool, rng: np.random.Generator) -> int:
    if unseen:
        return _pick(_UNSEEN, rng)
    index = int(rng.integers(scenes))
    return index if index < _UNSEEN.start else index + len(_UNSEEN)


def sample_house(kind: str, *, size: str, unseen: bool, rng: np.random.Generator, scenes: int = SCENES) -> House:
    """Samples a house for a task type.

    Args:
        kind: Short name of the task type.
        size: Name of the size.
        unseen: Take one of the scenes that training does not see.
        rng: Source of everything but the layout, which belongs to the scene.
        scenes: How many scenes of a kind of room training may see; the unseen ones are always the same five.
    """
    while True:
        room = _pick(ROOMS_OF[kind], rng)
        scene = scene_number(room, _scene_index(scenes, unseen, rng))
        receptacles = layout(room, scene, size)
        task = _task(kind, room, [receptacle.kind for receptacle in receptacles], rng)
        if task is not None:
            return House(room, scene, receptacles, _things(task, room, receptacles, size_named(size), rng), task)


def layout(room: str, scene: int, size: str) -> tuple[Receptacle, ...]:
    """The receptacles of a scene: the same for every game that is set there."""
    rng = np.random.default_rng([scene, list(SIZES).index(size)])
    low, high = size_named(size).receptacles
    count = int(rng.integers(low, high + 1))
    kinds = [*_CORE[room], *_furniture(room, rng)][: max(count, len(_CORE[room]))]
    locations: list[int] = []
    for index, kind in enumerate(kinds):
        shares = index > 0 and kind in kinds[:index] and rng.random() < _SHARED_LOCATION
        locations.append(locations[kinds.index(kind)] if shares else len(set(locations)))
    return tuple(map(Receptacle, kinds, locations))


def _furniture(room: str, rng: np.random.Generator) -> list[str]:
    """What a room has beside its core, in random order; numbers vary by half around the typical one."""
    bag: list[str] = []
    for kind, (share, typical) in ROOMS[room].receptacles.items():
        if rng.random() < share:
            number = int(rng.integers(typical - typical // 2, typical + typical // 2 + 1))
            bag += [kind] * (number - (kind in _CORE[room]))
    return [bag[index] for index in rng.permutation(len(bag))]


def _task(kind: str, room: str, kinds: Sequence[str], rng: np.random.Generator) -> Task | None:
    pairs = [pair for pair in _candidates(kind, room, sorted(set(kinds))) if _hides(pair, kinds)]
    if not pairs:
        return None
    thing, place = pairs[int(rng.integers(len(pairs)))]
    return Task(kind, thing, place)


def _candidates(kind: str, room: str, kinds: Sequence[str]) -> list[tuple[str, str]]:
    things = [thing for thing in ROOMS[room].objects if kind not in _ABILITY or thing in ABLE[_ABILITY[kind]]]
    if kind == "look":
        lamps = [lamp for lamp, stands in LAMPS.items() if set(stands) & set(kinds)]
        return [(thing, lamp) for thing in things for lamp in lamps]
    places = [place for place in kinds if place != _TOOL_PLACES.get(kind)]
    return [(thing, place) for thing in things for place in places if thing in CONTAINS[place]]


def _hides(pair: tuple[str, str], kinds: Sequence[str]) -> bool:
    """Whether the object can lie in two receptacles that are not its target, so that it has to be searched for."""
    thing, place = pair
    return sum(kind != place and thing in CONTAINS[kind] for kind in kinds) >= 2


def _things(
    task: Task, room: str, receptacles: Sequence[Receptacle], size: Size, rng: np.random.Generator
) -> tuple[Thing, ...]:
    things = [_placed(task.thing, receptacles, rng, avoid=task.place) for _ in range(task.wanted)]
    if task.kind == "look":
        stands = [index for index, receptacle in enumerate(receptacles) if receptacle.kind in LAMPS[task.place]]
        things.append(Thing(task.place, _pick(stands, rng)))
    others = [kind for kind in ROOMS[room].objects if kind != task.thing and _fits(kind, receptacles)]
    carried = int(rng.integers(size.objects[0], size.objects[1] + 1)) - task.wanted
    things += [_placed(_pick(others, rng), receptacles, rng) for _ in range(carried)]
    return tuple(things)


def _fits(kind: str, receptacles: Sequence[Receptacle]) -> bool:
    return any(kind in CONTAINS[receptacle.kind] for receptacle in receptacles)


def _placed(kind: str, receptacles: Sequence[Receptacle], rng: np.random.Generator, avoid: str = "") -> Thing:
    allowed = [i for i, place in enumerate(receptacles) if kind in CONTAINS[place.kind] and place.kind != avoid]
    return Thing(kind, _pick(allowed, rng))


def _pick(choices: Sequence[Choice], rng: np.random.Generator) -> Choice:
    return choices[int(rng.integers(len(choices)))]
