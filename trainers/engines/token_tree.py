"""Replies that begin alike as one tree of tokens, so that what they share is computed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["TokenTree"]

_Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class TokenTree:
    """The inner nodes come first, parents before children; leaves, which nothing follows, need not be computed.

    Attributes:
        tokens: Of each node, shape (m,).
        parents: Number of the node before it, -1 for those that follow the prompt; shape (m,).
        depths: Tokens between the prompt and the node, shape (m,).
        inner: How many nodes have children.
        paths: The nodes of each reply.
    """

    tokens: _Ints
    parents: _Ints
    depths: _Ints
    inner: int
    paths: tuple[_Ints, ...]

    @classmethod
    def of(cls, replies: Sequence[Sequence[int]]) -> TokenTree:
        """Builds the tree; equal replies share all of their nodes."""
        numbers: dict[tuple[int, int], int] = {}
        paths = []
        for reply in replies:
            path = [-1]
            for token in reply:
                path.append(numbers.setdefault((path[-1], int(token)), len(numbers)))
            paths.append(path[1:])
        parents, tokens = np.array(list(numbers), dtype=np.int64).reshape(-1, 2).T
        return cls._inner_first(tokens, parents, paths)

    @classmethod
    def _inner_first(cls, tokens: _Ints, parents: _Ints, paths: Sequence[Sequence[int]]) -> TokenTree:
        leaf = ~np.isin(np.arange(len(tokens)), parents)
        order = np.argsort(leaf, kind="stable")
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        moved = np.where(parents[order] < 0, -1, place[parents[order]])
        depths = np.zeros(len(order), dtype=np.int64)
        for node, parent in enumerate(moved):
            depths[node] = depths[parent] + 1 if parent >= 0 else 0
        return cls(tokens[order], moved, depths, int((~leaf).sum()), tuple(place[list(path)] for path in paths))

    def ancestors(self) -> npt.NDArray[np.bool_]:
        """Which inner nodes lie on the way to each inner node, itself included; shape (inner, inner)."""
        seen = np.eye(self.inner, dtype=bool)
        for node, parent in enumerate(self.parents[: self.inner]):
            if parent >= 0:
                seen[node] |= seen[parent]
        return seen
