"""Deals training rows to forward passes so that rows that begin alike stay together."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from trainers.engines.batching import common_prefix
from trainers.rollout.training_rows import TrainingRow, padding_row

__all__ = ["shared_passes"]

_Ints = npt.NDArray[np.int64]


def shared_passes(rows: Sequence[TrainingRow], count: int) -> list[list[TrainingRow]]:
    """Deals rows to a fixed number of forward passes; what neighbours begin alike with counts once.

    Rows are put in the order of their tokens. Passes of equal size would end at multiples of a count-th of the whole;
    each ends at most half a pass from there, where neighbours share least. One without rows gets one of padding.
    """
    ordered = sorted(rows, key=lambda weighted: (_tokens(weighted), weighted.trajectory))
    tokens = [np.array(_tokens(weighted), dtype=np.int64) for weighted in ordered]
    alike = np.array([0, *(common_prefix(a, b) for a, b in pairwise(tokens))])
    ends = np.cumsum([len(ids) - same for ids, same in zip(tokens, alike, strict=False)])
    cuts = np.maximum.accumulate([0, *(_cut(ends, alike, k, count) for k in range(1, count)), len(ordered)])
    return [ordered[a:b] or [padding_row()] for a, b in pairwise(cuts)]


def _cut(ends: _Ints, alike: _Ints, number: int, count: int) -> int:
    """How many rows stand before a cut: of those near its place, where the next row is least like the one before."""
    if len(ends) < 2:
        return 0
    total, before = int(ends[-1]), ends[:-1]
    distance = np.abs(before * count - number * total)
    near = np.flatnonzero(2 * distance <= total)
    if not len(near):
        return int(distance.argmin()) + 1
    return int(min(near, key=lambda i: (alike[i + 1], distance[i]))) + 1


def _tokens(weighted: TrainingRow) -> list[int]:
    return weighted.row.prompt_ids + weighted.row.completion_ids
