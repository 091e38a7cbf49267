"""Samples houses: the receptacles of a scene, a task that can be done there, and objects that may lie there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from skillc_gym.envs.alfworld.generate.catalogue import (
    ABLE,
    CONTAINS,
    FIXED,
    LAMPS,
    ROOM_WEIGHTS,
    ROOMS,
    TREATMENTS,
    Task,
)
from skillc_gym.envs.alfworld.generate.conventions import agreed_place
from skillc_gym.envs.alfworld.generate.knobs import Knobs
from skillc_gym.envs.alfworld.generate.things import (
    Placer,
    Receptacle,
    Thing,
    layout,
    real_stock,
    real_things,
    things_of,
)
from skillc_gym.errors import ConfigError

Choice = TypeVar("Choice")

SCENES = 25
"""How many scenes of a kind of room training and seen validation have by default, as ALFWorld has."""
_UNSEEN = range(25, 30)

MAX_TRIES = 10_000
"""Draws of a house, far more than any options need with which there is one."""


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


def rooms_of(kind: str, knobs: Knobs) -> tuple[str, ...]:
    """The rooms in which games of a task type are set; ConfigError if the knobs allow none of them."""
    rooms = tuple(room for room in ROOM_WEIGHTS[kind] if knobs.rooms is None or room in knobs.rooms)
    if not rooms:
        asked, possible = ", ".join(knobs.rooms or ()), ", ".join(ROOM_WEIGHTS[kind])
        raise ConfigError(f"Tasks of type {kind!r} need a {possible}; rooms= allows only {asked}.")
    return rooms


def sample_house(kind: str, *, size: str, unseen: bool, rng: np.random.Generator, scenes: int, knobs: Knobs) -> House:
    """Samples a house for a task type; ``rng`` draws everything but the layout, which belongs to the scene.

    The unseen scenes are always the same five, however many ``scenes`` of a kind of room training may see.
    """
    rooms, agreed = rooms_of(kind, knobs), agreed_place(knobs.convention, kind)
    for _ in range(MAX_TRIES):
        room = _weighted(rooms, ROOM_WEIGHTS[kind], rng) if size == "real" else _pick(rooms, rng)
        scene = _scene(room, scenes, unseen, rng)
        receptacles = layout(room, scene, size, knobs)
        placer = Placer(receptacles, size == "real", rng)
        stock = real_stock(room, scene) if size == "real" else ROOMS[room].objects
        task = _task(kind, stock, receptacles, placer, rng)
        if task is None or agreed not in (None, task.place):
            continue
        if size == "real":
            things = real_things(task, room, scene, placer, knobs)
        else:
            things = things_of(task, room, size, placer, knobs)
        return House(room, scene, receptacles, things, task)
    raise no_house(f"of a task {kind!r}" + (f" with a {agreed}, which is its place" if agreed else ""), knobs)


def no_house(what: str, knobs: Knobs) -> ConfigError:
    """The error where no draw gave a house that is wanted."""
    return ConfigError(
        f"The generator drew {MAX_TRIES:,} houses and none {what}; its options leave too few different ones ({knobs}): "
        "ask for more scenes, receptacles or objects"
    )


def _scene(room: str, scenes: int, unseen: bool, rng: np.random.Generator) -> int:
    """The number of a scene: ALFWorld's for its thirty of a kind of room, numbers of our own beyond them."""
    index = _pick(_UNSEEN, rng) if unseen else int(rng.integers(scenes))
    if not unseen and index >= _UNSEEN.start:
        index += len(_UNSEEN)
    first = ROOMS[room].first_scene
    return first + index if index < 30 else 1000 * first + index


# The task --------------------------------------------------------------------------------------------------------


def _task(
    kind: str, stock: Sequence[str], receptacles: Sequence[Receptacle], placer: Placer, rng: np.random.Generator
) -> Task | None:
    present = sorted({receptacle.kind for receptacle in receptacles})
    if kind in TREATMENTS and TREATMENTS[kind].tool not in present:
        return None
    # The object can lie in two receptacles that are not its target, so that it has to be searched for.
    pairs = [pair for pair in _candidates(kind, stock, present) if len(placer.spots(pair[0], avoid=pair[1])) >= 2]
    if not pairs:
        return None
    return Task(kind, *_pick(pairs, rng))


def _candidates(kind: str, stock: Sequence[str], present: Sequence[str]) -> list[tuple[str, str]]:
    treatment = TREATMENTS.get(kind)
    takeable = [thing for thing in stock if thing not in FIXED]
    things = [thing for thing in takeable if treatment is None or thing in ABLE[treatment.able]]
    if kind == "look":
        lamps = [lamp for lamp, stands in LAMPS.items() if set(stands) & set(present)]
        return [(thing, lamp) for thing in things for lamp in lamps]
    places = [place for place in present if treatment is None or place != treatment.tool]
    return [(thing, place) for thing in things for place in places if thing in CONTAINS[place]]


def _pick(choices: Sequence[Choice], rng: np.random.Generator) -> Choice:
    return choices[int(rng.integers(len(choices)))]


def _weighted(choices: Sequence[str], weights: dict[str, int], rng: np.random.Generator) -> str:
    shares = np.cumsum([weights[choice] for choice in choices])
    return choices[int(np.searchsorted(shares, rng.integers(shares[-1]), side="right"))]
