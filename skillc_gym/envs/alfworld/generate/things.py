"""What stands in a house and what lies there: its receptacles, the wanted things, and everything else."""

from __future__ import annotations

import bisect
import functools
import itertools
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from skillc_gym.envs.alfworld.generate.catalogue import (
    CONTAINS,
    DOORS,
    FIXED,
    FURNITURE,
    INVENTORY,
    LAMP_SHARE,
    LAMPS,
    OPENABLE,
    PLACES,
    ROOMS,
    Task,
)
from skillc_gym.envs.alfworld.generate.knobs import SIZES, Knobs

_CORE = {
    "kitchen": ("CounterTop", "SinkBasin", "Microwave", "Fridge", "Cabinet"),
    "living room": ("Sofa", "SideTable", "CoffeeTable", "Drawer"),
    "bedroom": ("Bed", "Desk", "Drawer", "SideTable"),
    "bathroom": ("SinkBasin", "Toilet", "CounterTop", "Cabinet"),
}
_SHARED_LOCATION = 0.15
# In real scenes burners, cabinets and drawers come in pairs, and small appliances stand on a counter.
_PAIRED = {"StoveBurner": 0.7, "Cabinet": 0.25, "Drawer": 0.25, "Shelf": 0.2}
_STANDS_ON = {"Toaster": "CounterTop", "CoffeeMachine": "CounterTop"}
_ON_A_COUNTER = 0.6


class Receptacle(NamedTuple):
    """A receptacle: its kind, such as "Cabinet", the location it is reached from, and whether it has a door."""

    kind: str
    location: int
    opens: bool


@functools.lru_cache(maxsize=1024)
def layout(room: str, scene: int, size: str, knobs: Knobs) -> tuple[Receptacle, ...]:
    """The receptacles of a scene: the same for every game that is set there with the same size and knobs."""
    seed = [scene, list(SIZES).index(size)]
    rng = np.random.default_rng(seed)
    kinds = _real_kinds(room, knobs, rng) if size == "real" else _kinds(room, size, knobs, rng)
    locations = _real_locations(kinds, rng) if size == "real" else _locations(kinds, rng)
    doors = _doors(kinds, size, knobs, np.random.default_rng([*seed, 1]))
    return tuple(map(Receptacle, kinds, locations, doors))


def _kinds(room: str, size: str, knobs: Knobs, rng: np.random.Generator) -> list[str]:
    low, high = knobs.receptacles or SIZES[size]["receptacles"]
    count = int(rng.integers(low, high + 1))
    kinds = [*_CORE[room], *_furniture(room, rng)]
    return _as_many(kinds, room, knobs, max(count, len(_CORE[room])), rng)


def _as_many(kinds: list[str], room: str, knobs: Knobs, count: int, rng: np.random.Generator) -> list[str]:
    """Cuts a list to a length; fills it up if the length was asked for and not left to the size."""
    if knobs.receptacles is not None:
        several = [kind for kind, (_, typical) in ROOMS[room].receptacles.items() if typical >= 3]
        kinds += [several[int(rng.integers(len(several)))] for _ in range(count - len(kinds))]
    return kinds[:count]


def _furniture(room: str, rng: np.random.Generator) -> list[str]:
    """What a room has besides its core, in random order; numbers vary by half around the typical one."""
    bag: list[str] = []
    for kind, (share, typical) in ROOMS[room].receptacles.items():
        if rng.random() < share:
            number = int(rng.integers(typical - typical // 2, typical + typical // 2 + 1))
            bag += [kind] * (number - (kind in _CORE[room]))
    return [bag[index] for index in rng.permutation(len(bag))]


def _real_kinds(room: str, knobs: Knobs, rng: np.random.Generator) -> list[str]:
    """Numbers of each kind as in some scene of ALFWorld, kind by kind."""
    bag: list[str] = []
    for kind, numbers in FURNITURE[room].items():
        bag += [kind] * numbers[int(rng.integers(len(numbers)))]
    if knobs.receptacles is None:
        return bag
    for kind in _CORE[room]:
        if kind in bag:
            bag.remove(kind)
    low, high = knobs.receptacles
    kinds = [*_CORE[room], *(bag[index] for index in rng.permutation(len(bag)))]
    return _as_many(kinds, room, knobs, max(int(rng.integers(low, high + 1)), len(_CORE[room])), rng)


def _locations(kinds: Sequence[str], rng: np.random.Generator) -> list[int]:
    locations: list[int] = []
    for index, kind in enumerate(kinds):
        shares = index > 0 and kind in kinds[:index] and rng.random() < _SHARED_LOCATION
        locations.append(locations[kinds.index(kind)] if shares else len(set(locations)))
    return locations


def _real_locations(kinds: Sequence[str], rng: np.random.Generator) -> list[int]:
    locations: list[int] = []
    for index, kind in enumerate(kinds):
        before = [locations[other] for other in range(index) if kinds[other] == kind]
        counters = [locations[other] for other in range(index) if kinds[other] == _STANDS_ON.get(kind)]
        if before and locations.count(before[-1]) == 1 and rng.random() < _PAIRED.get(kind, 0.0):
            locations.append(before[-1])
        elif counters and rng.random() < _ON_A_COUNTER:
            locations.append(counters[int(rng.integers(len(counters)))])
        else:
            locations.append(len(set(locations)))
    return locations


def _doors(kinds: Sequence[str], size: str, knobs: Knobs, rng: np.random.Generator) -> list[bool]:
    drawn = rng.random(len(kinds))
    real = dict.fromkeys(("Cabinet", "Drawer"), DOORS) if size == "real" else {}
    shares = [real.get(kind, 1.0) if knobs.closed is None else knobs.closed for kind in kinds]
    return [kind in OPENABLE and bool(draw < share) for kind, draw, share in zip(kinds, drawn, shares, strict=True)]


class Thing(NamedTuple):
    """An object and the index of the receptacle it lies in."""

    kind: str
    place: int


class Placer:
    """Puts things into the receptacles of one house: as the real scenes have them, or evenly where it is allowed."""

    def __init__(self, receptacles: Sequence[Receptacle], real: bool, rng: np.random.Generator) -> None:
        self._receptacles, self._real = receptacles, real
        self.rng = rng
        self._counts = Counter(receptacle.kind for receptacle in receptacles)
        self._spots: dict[tuple[str, str], list[int]] = {}

    def spots(self, kind: str, avoid: str = "") -> list[int]:
        """The receptacles, of another kind than the one to avoid, where such an object may begin."""
        known = self._spots.get((kind, avoid))
        if known is None:
            holders = PLACES[kind] if self._real else [place for place in self._counts if kind in CONTAINS[place]]
            known = self._spots[kind, avoid] = [
                index
                for index, receptacle in enumerate(self._receptacles)
                if receptacle.kind in holders and receptacle.kind != avoid
            ]
        return known

    def place(self, kind: str, avoid: str = "") -> Thing:
        """An object somewhere."""
        return Thing(kind, self._choose(kind, self.spots(kind, avoid)))

    def place_wanted(self, kind: str, avoid: str, chance: float | None) -> Thing:
        """An object behind a door with some chance, in the open otherwise, where there is a choice."""
        if chance is None:
            return self.place(kind, avoid)
        behind = bool(self.rng.random() < chance)
        spots = self.spots(kind, avoid)
        preferred = [index for index in spots if self._receptacles[index].opens is behind]
        return Thing(kind, self._choose(kind, preferred or spots))

    def stand(self, lamp: str) -> Thing:
        """A lamp on something that lamps stand on."""
        stands = [index for index, receptacle in enumerate(self._receptacles) if receptacle.kind in LAMPS[lamp]]
        return Thing(lamp, self._choose(lamp, stands))

    def _choose(self, kind: str, spots: Sequence[int]) -> int:
        if not self._real:
            return spots[int(self.rng.integers(len(spots)))]
        names = [self._receptacles[index].kind for index in spots]
        shares = list(itertools.accumulate(PLACES[kind][name] / self._counts[name] for name in names))
        return spots[bisect.bisect_right(shares, float(self.rng.random()) * shares[-1])]


# Number of wanted objects -> in how many of twenty real games there are 0, 1, 2, ... further ones of their kind.
_MORE_OF_IT = {1: (7, 6, 4, 3), 2: (9, 6, 5)}


def things_of(task: Task, room: str, size: str, placer: Placer, knobs: Knobs) -> tuple[Thing, ...]:
    """The things of a house: first the wanted ones, then the lamp of a task that needs one."""
    things = _wanted(task, placer, knobs)
    spares = knobs.spares or 0
    things += [placer.place_wanted(task.thing, task.place, knobs.hidden) for _ in range(spares)]
    others = [kind for kind in ROOMS[room].objects if kind != task.thing and placer.spots(kind)]
    low, high = knobs.objects or SIZES[size]["objects"]
    rng = placer.rng
    carried = int(rng.integers(low, high + 1)) - task.wanted - spares
    things += [placer.place(others[int(rng.integers(len(others)))]) for _ in range(carried)]
    return tuple(things)


def _wanted(task: Task, placer: Placer, knobs: Knobs) -> list[Thing]:
    things = [placer.place_wanted(task.thing, task.place, knobs.hidden) for _ in range(task.wanted)]
    return [*things, placer.stand(task.place)] if task.kind == "look" else things


@functools.lru_cache(maxsize=256)
def real_stock(room: str, scene: int) -> tuple[str, ...]:
    """The kinds of object that a scene has, in every game that is set there."""
    stock = INVENTORY[room]
    drawn = np.random.default_rng([scene, 3]).random(len(stock))
    return tuple(kind for (kind, (share, _)), draw in zip(stock.items(), drawn, strict=True) if draw < share)


def real_things(task: Task, room: str, scene: int, placer: Placer, knobs: Knobs) -> tuple[Thing, ...]:
    """The things of a house as in ALFWorld's scenes, in the order of `things_of`."""
    things = _wanted(task, placer, knobs)
    lit = np.random.default_rng([scene, 4]).random() < LAMP_SHARE.get(room, 0.0)
    if task.kind != "look" and lit and placer.spots("DeskLamp"):
        things.append(placer.place("DeskLamp"))
    drawn = int(np.searchsorted(np.cumsum(_MORE_OF_IT[task.wanted]), placer.rng.integers(20), side="right"))
    spares = drawn if knobs.spares is None else knobs.spares
    # With pick and pick2, another one at the target would win without a step.
    avoid = task.place if task.kind in ("pick", "pick2") or knobs.spares is not None else ""
    things += [placer.place_wanted(task.thing, avoid, knobs.hidden) for _ in range(spares)]
    stock = [kind for kind in real_stock(room, scene) if kind != task.thing and placer.spots(kind)]
    others = _real_others(stock, room, task.wanted + spares, knobs, placer.rng)
    return (*things, *(placer.place(kind) for kind in others))


def _real_others(stock: Sequence[str], room: str, wanted: int, knobs: Knobs, rng: np.random.Generator) -> list[str]:
    means = INVENTORY[room]
    others = [kind for kind in stock for _ in range(_number(means[kind][1], rng))]
    if knobs.objects is None:
        return others
    fixed = [kind for kind in others if kind in FIXED]
    movable = [others[index] for index in rng.permutation(len(others)) if others[index] not in FIXED]
    low, high = knobs.objects
    count = max(0, int(rng.integers(low, high + 1)) - wanted)
    movable += [movable[int(rng.integers(len(movable)))] for _ in range(count - len(movable))]
    return [*fixed, *movable[:count]]


def _number(mean: float, rng: np.random.Generator) -> int:
    """One, or with the chance that gives the mean, one to three."""
    return int(rng.integers(1, 4)) if rng.random() < mean - 1 else 1
