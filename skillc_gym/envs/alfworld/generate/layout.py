"""The receptacles of a scene: which there are, from where they are reached, which have a door."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skillc_gym.envs.alfworld.generate.catalogue import DOORS, OPENABLE, ROOMS, furniture
from skillc_gym.envs.alfworld.generate.knobs import PLAIN, SIZES, Knobs, size_named

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


@dataclass(frozen=True)
class Receptacle:
    """A receptacle.

    Attributes:
        kind: Its kind, such as "Cabinet".
        location: Number of the location from which it is reached.
        opens: Whether it has a door; it is closed at the start then.
    """

    kind: str
    location: int
    opens: bool


@functools.lru_cache(maxsize=1024)
def layout(room: str, scene: int, size: str, knobs: Knobs = PLAIN) -> tuple[Receptacle, ...]:
    """The receptacles of a scene: the same for every game that is set there with the same size and knobs."""
    seed = [scene, list(SIZES).index(size)]
    rng = np.random.default_rng(seed)
    kinds = _real_kinds(room, knobs, rng) if size == "real" else _kinds(room, size, knobs, rng)
    locations = _real_locations(kinds, rng) if size == "real" else _locations(kinds, rng)
    doors = _doors(kinds, size, knobs, np.random.default_rng([*seed, 1]))
    return tuple(map(Receptacle, kinds, locations, doors))


def _kinds(room: str, size: str, knobs: Knobs, rng: np.random.Generator) -> list[str]:
    low, high = knobs.receptacles or size_named(size).receptacles
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
    bag = [piece.kind for piece in furniture(room) for _ in range(piece.numbers[int(rng.integers(len(piece.numbers)))])]
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
