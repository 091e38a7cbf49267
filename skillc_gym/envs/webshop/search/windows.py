"""Windows over an index's documents: what every term can score at most in each, so that most are never looked into.

Documents that share a text of their own lie together (`IndexBuilder.add`), so the words of a query tend to meet in few
windows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

BITS = 14
"""A window has two to this power documents."""
_TABLED = 1024
"""Terms of more postings have a row in the tables; for the others, their postings are looked through."""


def write_windows(
    folder: Path, starts: NDArray[np.int64], docs: NDArray[Any], codes: NDArray[Any], documents: int
) -> None:
    """Writes the tables of the terms that many documents hold.

    ``starts``, int64 (T + 1,), says where each term's postings begin; ``docs`` (P,) are their documents, ascending for
    every term, ``codes`` (P,) their codes.
    """
    terms = np.flatnonzero(np.diff(starts) > _TABLED)
    edges = _edges(documents)
    begins = np.empty((len(terms), len(edges)), np.int64)
    highest = np.zeros((len(terms), len(edges) - 1), codes.dtype)
    for row, term in enumerate(terms.tolist()):
        start, end = int(starts[term]), int(starts[term + 1])
        begins[row] = start + docs[start:end].searchsorted(edges)
        filled = np.flatnonzero(np.diff(begins[row]))
        highest[row, filled] = np.maximum.reduceat(codes[start:end], begins[row, filled] - start)
    for name, array in (("window_terms", terms), ("window_starts", begins), ("window_highest", highest)):
        np.save(folder / f"{name}.npy", array)


class Windows:
    """The tables, mapped."""

    def __init__(self, folder: Path, documents: int, docs: NDArray[Any]) -> None:
        self._edges, self._docs = _edges(documents), docs
        self._terms, self._starts, self._highest = (
            np.asarray(np.load(folder / f"window_{name}.npy", mmap_mode="r")) for name in ("terms", "starts", "highest")
        )

    def spread(
        self, term: int, start: int, end: int, scores: NDArray[np.float32], bound: float
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Returns where a term's postings, ``start`` to ``end``, begin in each window, and the most they score there.

        ``scores`` has the score of every code, 0 for code 0; ``bound`` is the highest of all.
        """
        row = int(self._terms.searchsorted(term))
        if row < len(self._terms) and self._terms[row] == term:
            return self._starts[row], scores[self._highest[row]].astype(np.float64)
        # A rare term has no row: one bound for all its windows is coarse, but there are few of them.
        begins = start + self._docs[start:end].searchsorted(self._edges)
        return begins, np.where(np.diff(begins) > 0, bound, 0.0)


def runs(chosen: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Returns the stretches of windows that are chosen, as (first, behind the last)."""
    changes = np.flatnonzero(np.diff(chosen, prepend=False, append=False)).tolist()
    return list(zip(changes[::2], changes[1::2], strict=True))


def _edges(documents: int) -> NDArray[np.int64]:
    return np.arange(-(-documents >> BITS) + 1, dtype=np.int64) << BITS
