"""Tasks of the coin collector: their names, and the mazes behind them.

A maze is a chain of rooms from the start to the coin, with dead ends beside it. The family is that of Yuan et al.
(2018), "Counting to Explore and Generalize in Text-based Games" (arXiv 1806.11525, section 4): a chain alone, or one or
two dead ends at each room of the chain. Layout, names and wording are our own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import pairwise, product
from typing import Any

import numpy as np

from skillc_gym.errors import ConfigError, require_name
from skillc_gym.values import listed, require_whole

DEAD_ENDS: Mapping[str, int] = {"easy": 0, "medium": 1, "hard": 2}
"""Task types, and how many dead ends a room of the chain has at most."""

DIRECTIONS: Mapping[str, tuple[int, int]] = {"east": (1, 0), "north": (0, 1), "south": (0, -1), "west": (-1, 0)}
OPPOSITE: Mapping[str, str] = {"east": "west", "north": "south", "south": "north", "west": "east"}
MOST_MOVES = 30
"""Longest chain: its rooms and dead ends still have different names."""

_LOOKS = ("bright", "cold", "dusty", "grand", "narrow", "quiet", "round", "warm")
_KINDS = (
    *("attic", "bedroom", "cellar", "chamber", "closet", "gallery", "hall", "kitchen", "library", "lounge"),
    *("office", "pantry", "parlour", "studio", "workshop"),
)
_Cell = tuple[int, int]


@dataclass(frozen=True)
class Maze:
    """Rooms by number; the start is room 0."""

    names: tuple[str, ...]
    """Different names of two words."""
    doors: tuple[Mapping[str, int], ...]
    """By direction, the room behind; directions sorted."""
    coin: int
    """Where the coin lies."""
    moves: int
    """Moves from the start to the coin."""


def build_maze(moves: int, dead_ends: int, rng: np.random.Generator) -> Maze:
    """Draws a maze; where its chain winds, rooms may have fewer dead ends than asked for."""
    chain = _chain(moves, rng)
    cells, joined = list(chain), list(pairwise(chain))
    for cell in chain[:-1]:
        free = [other for other in _beside(cell, rng) if other not in cells]
        cells += free[:dead_ends]
        joined += [(cell, other) for other in free[:dead_ends]]
    number = {cell: index for index, cell in enumerate(cells)}
    doors: list[dict[str, int]] = [{} for _ in cells]
    for one, other in joined:
        way = next(name for name, step in DIRECTIONS.items() if _moved(one, step) == other)
        doors[number[one]][way], doors[number[other]][OPPOSITE[way]] = number[other], number[one]
    names = [f"{look} {kind}" for look, kind in product(_LOOKS, _KINDS)]
    drawn = rng.permutation(len(names))[: len(cells)]
    return Maze(tuple(names[i] for i in drawn), tuple(dict(sorted(door.items())) for door in doors), moves, moves)


def _chain(moves: int, rng: np.random.Generator) -> list[_Cell]:
    """A walk that never meets itself: ways are tried in a drawn order; where all are closed, a step is taken back."""
    walk: list[_Cell] = [(0, 0)]
    left = [_beside((0, 0), rng)]
    while len(walk) <= moves:
        ways = [cell for cell in left[-1] if cell not in walk]
        if ways:
            left[-1] = ways[1:]
            walk.append(ways[0])
            left.append(_beside(ways[0], rng))
        else:
            walk.pop()
            left.pop()
    return walk


def _beside(cell: _Cell, rng: np.random.Generator) -> list[_Cell]:
    steps = list(DIRECTIONS.values())
    return [_moved(cell, steps[i]) for i in rng.permutation(len(steps))]


def _moved(cell: _Cell, step: tuple[int, int]) -> _Cell:
    return cell[0] + step[0], cell[1] + step[1]


SPLITS = ("train", "valid", "test")


@dataclass(frozen=True)
class Family:
    """Which mazes there are; ConfigError for a number outside its range."""

    seed: int = 0
    """Another seed, other mazes."""
    tasks_per_type: int = 200
    """Tasks of each type in each split."""
    shortest: int = 2
    """Fewest moves to the coin."""
    longest: int = 6
    """Most moves to the coin."""

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            object.__setattr__(self, name, require_whole(f"generator: {name}", value, 0))
        if not 1 <= self.shortest <= self.longest <= MOST_MOVES or not 1 <= self.tasks_per_type <= 10_000:
            raise ConfigError(
                f"generator: expected 1 <= shortest <= longest <= {MOST_MOVES} and 1 <= tasks_per_type <= 10000, "
                f"got {self}"
            )

    @classmethod
    def of(cls, options: Mapping[str, Any] | None) -> Family:
        """Reads options; UnknownNameError if there is no option of that name, ConfigError for what is no mapping."""
        if options is not None and not isinstance(options, Mapping):
            raise ConfigError(f"generator= is a dictionary such as {{'longest': 6}}; got {options!r}.")
        for name in options or {}:
            require_name("option of the generator", name, cls.__dataclass_fields__)
        return cls(**(options or {}))


class TaskSet:
    """The tasks of a split. Their ``ids``, sorted, are ``<split>/<type>/<moves>-<number>``: ``train/hard/05-0017``.

    UnknownNameError if the split or a task type does not exist; ``task_types`` is None for all.
    """

    def __init__(self, split: str, task_types: Iterable[str] | str | None, family: Family) -> None:
        require_name("split", split, SPLITS)
        asked = listed(DEAD_ENDS if task_types is None else task_types)
        for name in asked or [""]:
            require_name("task type", name, DEAD_ENDS, "Leave task_types out for all of them.")
        self.family, spread = family, family.longest - family.shortest + 1
        names = [f"{family.shortest + number % spread:02d}-{number:04d}" for number in range(family.tasks_per_type)]
        self.ids = tuple(sorted(f"{split}/{kind}/{name}" for kind in set(asked) for name in names))
        self._known = dict.fromkeys(self.ids)

    def type_of(self, task_id: str) -> str:
        """A task's type; UnknownNameError if there is no such task."""
        return require_name("task id", task_id, self._known, "env.unwrapped.task_ids lists them.").split("/")[1]

    def maze(self, task_id: str) -> Maze:
        """The maze of one of the tasks; the same on every machine."""
        return _maze(self.family.seed, task_id)


@lru_cache(maxsize=4096)
def _maze(seed: int, task_id: str) -> Maze:
    _, kind, name = task_id.split("/")
    digest = hashlib.sha256(f"{seed}/{task_id}".encode()).digest()
    rng = np.random.Generator(np.random.PCG64(int.from_bytes(digest[:16], "big")))
    return build_maze(int(name.split("-")[0]), DEAD_ENDS[kind], rng)
