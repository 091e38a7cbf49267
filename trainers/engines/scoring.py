"""Replies that a request allows, and sequences of tokens as the tree of what they begin alike with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trainers.engines.types import Request

_Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class TokenTree:
    """The inner nodes come first, parents before children; leaves, which nothing follows, need not be computed."""

    tokens: _Ints
    """Of each node, shape (m,)."""
    parents: _Ints
    """Number of the node before it, -1 for those that follow the prompt; shape (m,)."""
    depths: _Ints
    """Tokens between the prompt and the node, shape (m,)."""
    inner: int
    """How many nodes have children."""
    paths: tuple[_Ints, ...]
    """The nodes of each reply."""

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
        leaf = ~np.isin(np.arange(len(tokens)), parents)
        order = np.argsort(leaf, kind="stable")
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        moved = np.where(parents[order] < 0, -1, place[parents[order]])
        depths = np.zeros(len(order), dtype=np.int64)
        for node, parent in enumerate(moved):
            depths[node] = depths[parent] + 1 if parent >= 0 else 0
        return cls(tokens[order], moved, depths, int((~leaf).sum()), tuple(place[list(path)] for path in paths))


def possible_replies(request: Request) -> Sequence[Sequence[int]]:
    """The choices that a request has room for; the shortest one if it has room for none."""
    return [reply for reply in request.choices if len(reply) <= request.max_tokens] or [min(request.choices, key=len)]
