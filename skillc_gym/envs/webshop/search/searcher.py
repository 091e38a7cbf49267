"""Searching a catalogue's index: the ranking and the scores of Lucene's BM25, over memory-mapped arrays.

Small indexes are scored whole. In large ones the most promising window of documents is scored first, which tells how
high the k-th score is at least. Windows that cannot reach that are never looked into; in the others the words that can
give most are scored first, over all their documents, and once the others could no longer lift another document that
high, they are looked up for the documents still in the running only. Both ways give the same result: skipping is
decided by upper bounds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skillc_gym.envs.webshop.search import bm25, index_build
from skillc_gym.envs.webshop.search.analyzer import analyze
from skillc_gym.envs.webshop.workplace import mapped, mapped_bytes

MAX_TERMS = 1024
"""Distinct terms of a query that count; Lucene refuses more, here the rest is left out."""
_SMALL = 1 << 15
"""Up to so many documents a sum over all of them costs less than keeping track of those touched."""
_SCATTERED = 6
"""A term of up to so many postings a document in the running is added up whole rather than looked up."""
_PIECE = 1 << 15
"""So many postings are added up at once: what lies between fits the processor's cache, and takes no memory."""
_GROUP = 32
"""So many windows are looked into together: their sums take four megabytes."""
_SLACK = 1e-4
"""Upper bounds are widened by this share, far more than rounding could take off them."""
_PLACES, _WEIGHED_BYTES = 1 << 13, 1 << 20
"""How many terms' places, and how much of terms' scores, is remembered."""

_NO_WINDOWS = np.zeros(0, np.int64), np.zeros(0)

Docs = NDArray[Any]
Scores = NDArray[Any]


class _Term(NamedTuple):
    """A query term, as many times as it stands there: its place in the index, where its postings lie, scores by code.

    ``begins`` and ``bounds`` say, in large indexes, where its postings of each window begin, and the most they score.
    """

    place: int
    start: int
    end: int
    scores: NDArray[np.float32]
    bound: float
    begins: NDArray[np.int64]
    bounds: NDArray[np.float64]


class _Group(NamedTuple):
    """Windows looked into together, in stretches of (first, behind the last); documents count from ``base``."""

    stretches: list[tuple[int, int]]
    base: int


class SearchIndex:
    """An index of ``size`` documents, ``documents`` of them with any term, read-only and shared by all processes."""

    def __init__(self, folder: Path, documents: int, size: int) -> None:
        self._documents, self._size = documents, size
        self._hashes, self._term_ends = mapped(folder, "hashes", "term_ends")
        self._texts = mapped_bytes(folder / "terms.bin", int(self._term_ends[-1]))
        self._starts, self._docs, self._codes, self._highest = mapped(folder, "starts", "docs", "codes", "highest")
        self._saturations, self._products, self._ties = mapped(folder, "saturations", "products", "ties")
        dense, self._columns = mapped(folder, "dense_terms", "columns")
        self._rows = {int(term): row for row, term in enumerate(dense)}
        # Of the terms of many postings: where those of each window begin, and the highest code there.
        self._tabled, self._begins, self._tops = mapped(folder, "window_terms", "window_starts", "window_highest")
        self._edges = index_build.window_edges(size)
        self._found = lru_cache(_PLACES)(self._place)
        self._weighed = lru_cache(_WEIGHED_BYTES // self._saturations.nbytes)(self._term)
        # One array of sums serves all searches: it is all zeros between them, and one thread's at a time.
        self._sums = np.zeros(min(_GROUP << index_build.WINDOW_BITS, size) if size > _SMALL else 0)
        self._sums_lock = Lock()

    def top(self, query: str, k: int = 50) -> list[tuple[int, float]]:
        """Returns the best k products that hold any word of the query, as (index, score); words count as often."""
        terms = self._terms(query)
        if not terms or k <= 0:
            return []
        if self._size <= _SMALL:
            return self._ranked(*self._score_small(terms), k)
        with self._sums_lock:
            found = self._score_pruned(terms, k)
        return self._ranked(*found, k)

    def _terms(self, query: str) -> list[_Term]:
        """Finds the query's terms, those of the highest possible score first."""
        counts = Counter(analyze(query))
        found = []
        for term, count in list(counts.items())[:MAX_TERMS]:
            place = self._found(term)
            if place is not None:
                found.append(self._weighed(place, count))
        return sorted(found, key=lambda term: -term.bound)

    def _place(self, term: str) -> int | None:
        wanted, text = np.uint64(index_build.term_hash(term)), term.encode("utf-8", "surrogatepass")
        place = int(self._hashes.searchsorted(wanted))
        while place < len(self._hashes) and self._hashes[place] == wanted:
            if self._texts[self._term_ends[place] : self._term_ends[place + 1]] == text:
                return place
            place += 1
        return None

    def _term(self, place: int, count: int) -> _Term:
        start, end = int(self._starts[place]), int(self._starts[place + 1])
        weight = np.float32(count) * bm25.idf(self._documents, end - start)
        # Lucene's order of operations in single precision: any other one breaks its ties differently.
        scores: NDArray[np.float32] = np.subtract(weight, weight / self._saturations, dtype=np.float32)
        bound = float(scores[self._highest[place]])
        windows = self._in_windows(place, start, end, scores, bound) if self._size > _SMALL else _NO_WINDOWS
        return _Term(place, start, end, scores, bound, *windows)

    def _in_windows(
        self, place: int, start: int, end: int, scores: NDArray[np.float32], bound: float
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Returns where a term's postings begin in each window, and the most they score there."""
        row = int(self._tabled.searchsorted(place))
        if row < len(self._tabled) and self._tabled[row] == place:
            return self._begins[row], scores[self._tops[row]].astype(np.float64)
        # A rare term has no row: one bound for all its windows is coarse, but there are few of them.
        begins = start + self._docs[start:end].searchsorted(self._edges)
        return begins, np.where(np.diff(begins) > 0, bound, 0.0)

    def _postings(self, term: _Term, start: int, end: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Returns documents and scores of some of the term's postings."""
        return self._docs[start:end], term.scores.take(self._codes[start:end])

    def _pieces(self, term: _Term, group: _Group) -> Iterator[tuple[Docs, NDArray[np.float32]]]:
        """Yields the term's documents in a group, counted from its first, and scores."""
        for first, behind in group.stretches:
            begin, end = int(term.begins[first]), int(term.begins[behind])
            for start in range(begin, end, _PIECE):
                docs, scores = self._postings(term, start, min(start + _PIECE, end))
                yield docs - np.int32(group.base), scores

    def _score_small(self, terms: list[_Term]) -> tuple[Docs, Scores]:
        docs, scores = zip(*(self._postings(term, term.start, term.end) for term in terms), strict=True)
        sums: Scores = np.bincount(np.concatenate(docs), np.concatenate(scores), minlength=self._size)
        found = np.flatnonzero(sums)
        return found, sums[found]

    def _score_pruned(self, terms: list[_Term], k: int) -> tuple[Docs, Scores]:
        # Block-max pruning: windows of documents whose bounds cannot reach the k-th best score are never read.
        bounds = np.array([term.bounds for term in terms]) * (1 + _SLACK)
        reach = bounds.sum(axis=0)
        docs, scores = np.zeros(0, np.int64), np.zeros(0)
        if not reach.any():
            return docs, scores
        floor = self._floor(terms, int(reach.argmax()), k)
        firsts = range(0, len(reach), _GROUP)
        for first in sorted(firsts, key=lambda first: -float(reach[first : first + _GROUP].max())):
            group = slice(first, first + _GROUP)
            chosen = (reach[group] >= floor) & (reach[group] > 0)
            if chosen.any():
                found = self._score_group(terms, bounds[:, group], chosen, first, floor)
                docs, scores = np.concatenate([docs, found[0]]), np.concatenate([scores, found[1]])
                floor = max(floor, _reached(scores, k))
        return docs, scores

    def _score_group(
        self, terms: list[_Term], bounds: Scores, chosen: NDArray[np.bool_], first: int, floor: float
    ) -> tuple[Docs, Scores]:
        """Scores the documents of the chosen windows of a group, from its ``first`` on, that can reach the floor."""
        # rest[i] bounds what the terms from the i-th on can add in any window: once it is below the floor, they lift no
        # document that has none of the terms before (the "non-essential" terms of MaxScore).
        edges = (first + np.flatnonzero(np.diff(chosen, prepend=False, append=False))).tolist()
        stretches = list(zip(edges[::2], edges[1::2], strict=True))
        group = _Group(stretches, first << index_build.WINDOW_BITS)
        rest = bounds[::-1, chosen].cumsum(axis=0).max(axis=1)[::-1].tolist()
        left = next((number for number, bound in enumerate(rest) if bound < floor), len(terms))
        touched: list[Docs] = []
        try:
            for term in terms[:left]:
                for docs, scores in self._pieces(term, group):
                    self._add(docs, scores, touched)
            docs, scores = self._complete(np.concatenate(touched), terms[left:], rest[left:], floor, group)
            return docs + np.int64(group.base), scores
        finally:
            # Also after an interrupt: the next search needs zeros.
            for docs in touched:
                self._sums[docs] = 0.0

    def _floor(self, terms: list[_Term], window: int, k: int) -> float:
        """Returns a score that k documents reach: one window is scored whole."""
        # Any k documents will do: their k-th score is a score that the best k reach at least.
        spans = [(term, int(term.begins[window]), int(term.begins[window + 1])) for term in terms]
        docs, scores = zip(*(self._postings(*span) for span in spans), strict=True)
        places = np.concatenate(docs)
        places -= int(places.min())
        sums = np.bincount(places, np.concatenate(scores))
        return _reached(sums, k)

    def _add(self, docs: Docs, scores: Scores, touched: list[Docs]) -> None:
        """Adds scores of a term to the sums, and notes the documents that had none."""
        before = self._sums.take(docs)
        touched.append(docs.compress(before == 0))
        before += scores
        self._sums[docs] = before

    def _complete(
        self, docs: Docs, terms: list[_Term], rest: list[float], floor: float, group: _Group
    ) -> tuple[Docs, Scores]:
        """Adds the scores of the remaining terms, leaving out documents as soon as they cannot reach the floor."""
        sums = self._sums
        scores = sums.take(docs)
        for term, bound in zip(terms, rest, strict=True):
            # What even all remaining terms cannot lift to the floor is out.
            alive = np.flatnonzero(scores >= floor - bound)
            if len(alive) < len(docs):
                docs, scores = docs.take(alive), scores.take(alive)
            if term.place in self._rows or term.end - term.start > _SCATTERED * len(docs):
                scores += self._lookup(term, docs, group.base)
                continue
            sums[docs] = scores
            for holding, gained in self._pieces(term, group):
                before = sums.take(holding)
                before += gained * (before > 0)
                sums[holding] = before
            scores = sums.take(docs)
        return docs, scores

    def _lookup(self, term: _Term, docs: Docs, base: int) -> Scores:
        """Returns the term's score in each of some documents, counted from a first one; 0 where it is not."""
        row = self._rows.get(term.place)
        if row is not None:
            scores: Scores = term.scores.take(self._columns[row, base:].take(docs))
            return scores
        wanted, span = docs + np.int32(base), self._docs[term.start : term.end]
        places = np.minimum(span.searchsorted(wanted), len(span) - 1)
        return np.where(span[places] == wanted, term.scores[self._codes[term.start + places]], 0.0)

    def _ranked(self, docs: Docs, scores: Scores, k: int) -> list[tuple[int, float]]:
        """Returns the k best products by score in single precision; equals by their place among equals."""
        # Lucene sums doubles and keeps a float: scores that differ in the last bits only are equal, and ties decide.
        values = scores.astype(np.float32)
        if len(values) > k:
            least = np.partition(values, len(values) - k)[-k]
            kept = np.flatnonzero(values >= least)
            docs, values = docs.take(kept), values.take(kept)
        order = np.lexsort((self._ties[docs], -values))[:k]
        return list(zip(self._products[docs[order]].tolist(), values[order].tolist(), strict=True))


def _reached(scores: Scores, k: int) -> float:
    """Returns a score, 0 or a little less than the k-th, that k documents reach."""
    return float(np.partition(scores, len(scores) - k)[-k]) * (1 - _SLACK) if len(scores) >= k else 0.0
