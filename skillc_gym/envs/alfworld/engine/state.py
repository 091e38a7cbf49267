"""What can change in a running game, as one small immutable value."""

from __future__ import annotations

from typing import NamedTuple

Indices = tuple[int, ...]


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
    inside: tuple[Indices, ...]
    # In PDDL an object can be in a receptacle and at no place, or the other way round: two facts, so two tables.
    lying: tuple[Indices, ...]
    left: frozenset[tuple[int, int]]
    clean: int
    hot: int
    cool: int
    sliced: int
    toggled: int
    lit: int
