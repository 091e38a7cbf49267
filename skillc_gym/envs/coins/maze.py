"""Mazes of the coin collector: a chain of rooms from the start to the coin, with dead ends beside it.

The family is that of Yuan et al. (2018), "Counting to Explore and Generalize in Text-based Games" (arXiv 1806.11525,
section 4): a chain alone, or one or two dead ends at each room of the chain. Layout, names and wording are our own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np

__all__ = ["DEAD_ENDS", "DIRECTIONS", "MOST_MOVES", "OPPOSITE", "Maze", "build_maze"]

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
    """Draws a maze.

    Args:
        moves: Length of the chain, from 1 to `MOST_MOVES`.
        dead_ends: Most dead ends at each room before the coin's; where the chain winds there may be room for fewer.
        rng: Where everything is drawn from.
    """
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
