"""What a house may hold and what a game may ask for: the tables of ``houses.json``.

Counts and pairs follow the 3,553 training games of ALFWorld (ALFRED's floor plans in AI2-THOR), over their 108 scenes,
27 of each kind of room, and are rounded; houses of size "real" follow what the real scenes have.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from skillc_gym.pages import resource

_TABLES: dict[str, Any] = json.loads(resource(__package__, "houses.json"))


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


class Treatment(NamedTuple):
    """What is done to an object: the kind of receptacle that does it, who can have it done, what holds then."""

    tool: str
    able: str
    done: str


TREATMENTS: Mapping[str, Treatment] = {
    "clean": Treatment("SinkBasin", "cleanable", "isClean"),
    "heat": Treatment("Microwave", "heatable", "isHot"),
    "cool": Treatment("Fridge", "coolable", "isCool"),
}


class Room(NamedTuple):
    """A kind of room: its first scene, what stands there (share of rooms, typical number), and what lies about."""

    first_scene: int
    receptacles: Mapping[str, tuple[float, int]]
    objects: Sequence[str]


ROOMS: dict[str, Room] = {name: Room(**room) for name, room in _TABLES["rooms"].items()}
ABLE: dict[str, frozenset[str]] = {ability: frozenset(kinds.split()) for ability, kinds in _TABLES["able"].items()}
"""Property -> the objects that have it. Everything listed in a room can be picked up."""
CONTAINS: dict[str, frozenset[str]] = {place: frozenset(kinds.split()) for place, kinds in _TABLES["contains"].items()}
"""Receptacle -> the objects that may be put into or onto it."""
LAMPS: dict[str, tuple[str, ...]] = {lamp: tuple(stands.split()) for lamp, stands in _TABLES["lamps"].items()}
"""Lamp -> receptacles it may stand on."""
OPENABLE = frozenset(_TABLES["openable"].split())
DOORS = 0.8
"""Share of cabinets and drawers that open; the others are like shelves, as where AI2-THOR found no way to open them."""
LAMP_SHARE: dict[str, float] = _TABLES["lamp_share"]
"""Room -> share of its scenes that have desk lamps, asked for or not."""
FIXED = frozenset({"HousePlant", "Television"})
"""Objects that are seen and cannot be taken."""
ROOM_WEIGHTS: dict[str, dict[str, int]] = _TABLES["room_weights"]
"""Task type -> the rooms that it is set in -> number of training games."""
FURNITURE: dict[str, dict[str, list[int]]] = _TABLES["furniture"]
"""Room -> kind of receptacle -> its numbers in the scenes, one for each scene, sorted."""
INVENTORY: dict[str, dict[str, tuple[float, float]]] = _TABLES["inventory"]
"""Room -> object -> share of the scenes that have any, mean number there."""
PLACES: dict[str, dict[str, int]] = _TABLES["places"]
"""Object -> receptacle -> weight in percent, for where it lies at the start."""
