"""Searching a catalogue's index: the ranking and the scores of Lucene's BM25, over memory-mapped arrays.

Small indexes are scored whole. In large ones the rarest words are scored first, over all their documents; once the
commoner ones could no longer lift another document into the first k, they are looked up for the documents still in
the running only. Both ways give the same result: skipping is decided by upper bounds.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skillc_gym.webshop import bm25
from skillc_gym.webshop.analyzer import analyze
from skillc_gym.webshop.index_build import term_hash

__all__ = ["MAX_TERMS", "SearchIndex"]

MAX_TERMS = 1024
"""Distinct terms of a query that count; Lucene refuses more, here the rest is left out."""
_SMALL = 1 << 15
"""Up to so many documents a sum over all of them costs less than keeping track of those touched."""
_WORTH_A_PROBE, _GROWN, _PROBED = 20_000, 3, 2
"""Before a term of so many postings, if 3 times more documents were touched than last time, the best 2 k are scored
to the end: that may spare the term."""
_SCATTERED = 6
"""A term of up to so many postings a document in the running is added up whole rather than looked up."""
_SLACK = 1e-4
"""Upper bounds are widened by this share, far more than rounding could take off them."""

Docs = NDArray[Any]
Scores = NDArray[Any]


class _Term(NamedTuple):
    """A query term: its place in the index, its postings, its weight, the score of every code and the highest one."""

    place: int
    start: int
    end: int
    scores: NDArray[np.float32]
    bound: float


class SearchIndex:
    """An index on disk, opened read-only and shared by all processes that open it.

    Args:
        folder: What `IndexBuilder` wrote.
        documents: How many documents have any term.
        size: How many documents there are.
    """

    def __init__(self, folder: Path, documents: int, size: int) -> None:
        self._documents, self._size = documents, size
        self._hashes = _map(folder, "hashes")
        self._term_ends, self._texts = _map(folder, "term_ends"), _bytes(folder / "terms.bin")
        self._starts, self._docs, self._codes = (_map(folder, name) for name in ("starts", "docs", "codes"))
        self._highest, self._saturations = _map(folder, "highest"), _map(folder, "saturations")
        self._products, self._ties = _map(folder, "products"), _map(folder, "ties")
        self._rows = {int(term): row for row, term in enumerate(_map(folder, "dense_terms"))}
        self._columns = _map(folder, "columns")
        # One array of sums serves all searches: it is all zeros between them, and one thread's at a time.
        self._sums, self._sums_lock = np.zeros(size if size > _SMALL else 0), Lock()

    def top(self, query: str, k: int = 50) -> list[tuple[int, float]]:
        """Returns the best k products that hold any word of the query, as (index, score).

        Args:
            query: Any text; words count as often as they stand in it.
            k: How many at most.
        """
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
            place = self._place(term)
            if place is not None:
                found.append(self._term(place, count))
        return sorted(found, key=lambda term: -term.bound)

    def _place(self, term: str) -> int | None:
        wanted, text = np.uint64(term_hash(term)), term.encode("utf-8", "surrogatepass")
        place = int(self._hashes.searchsorted(wanted))
        while place < len(self._hashes) and self._hashes[place] == wanted:
            if self._texts[self._term_ends[place] : self._term_ends[place + 1]].tobytes() == text:
                return place
            place += 1
        return None

    def _term(self, place: int, count: int) -> _Term:
        start, end = int(self._starts[place]), int(self._starts[place + 1])
        weight = np.float32(count) * bm25.idf(self._documents, end - start)
        scores: NDArray[np.float32] = np.subtract(weight, weight / self._saturations, dtype=np.float32)
        return _Term(place, start, end, scores, float(scores[self._highest[place]]))

    def _postings(self, term: _Term) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        span = slice(term.start, term.end)
        return self._docs[span], term.scores[self._codes[span]]

    def _score_small(self, terms: list[_Term]) -> tuple[Docs, Scores]:
        docs, scores = zip(*map(self._postings, terms), strict=True)
        sums: Scores = np.bincount(np.concatenate(docs), np.concatenate(scores), minlength=self._size)
        found = np.flatnonzero(sums)
        return found, sums[found]

    def _score_pruned(self, terms: list[_Term], k: int) -> tuple[Docs, Scores]:
        rest = np.cumsum([term.bound for term in reversed(terms)])[::-1] * (1 + _SLACK)
        sums, touched, floor, seen, probed = self._sums, list[Docs](), 0.0, 0, 0
        for number, term in enumerate(terms):
            if term.end - term.start > _WORTH_A_PROBE and seen >= max(2 * k, _GROWN * probed):
                floor, probed = max(floor, self._floor(np.concatenate(touched), terms[number:], k)), seen
            if floor > rest[number]:
                left = number
                break
            docs, scores = self._postings(term)
            before = sums[docs]
            sums[docs] = before + scores
            touched.append(docs[before == 0])
            seen += len(touched[-1])
        else:
            left = len(terms)
        found = np.concatenate(touched)
        if left < len(terms) and seen > probed:
            floor = max(floor, self._floor(found, terms[left:], k))
        docs, scores = self._complete(found, terms[left:], rest[left:], floor)
        sums[found] = 0.0
        return docs, scores

    def _floor(self, docs: Docs, terms: list[_Term], k: int) -> float:
        """Returns a score that k documents reach: those that look best so far are scored to the end."""
        scores = self._sums[docs]
        if len(docs) > _PROBED * k:
            best = np.argpartition(scores, len(docs) - _PROBED * k)[-_PROBED * k :]
            docs, scores = docs[best], scores[best]
        for term in terms:
            scores += self._lookup(term, docs)
        return float(np.partition(scores, len(scores) - k)[-k]) * (1 - _SLACK)

    def _complete(self, docs: Docs, terms: list[_Term], rest: NDArray[np.float64], floor: float) -> tuple[Docs, Scores]:
        """Adds the scores of the remaining terms, leaving out documents as soon as they cannot reach the floor."""
        sums = self._sums
        scores = sums[docs]
        for term, bound in zip(terms, rest, strict=True):
            alive = np.flatnonzero(scores + bound >= floor)
            if len(alive) < len(docs):
                docs, scores = docs[alive], scores[alive]
            if term.place in self._rows or term.end - term.start > _SCATTERED * len(docs):
                scores += self._lookup(term, docs)
                continue
            sums[docs] = scores
            holding, gained = self._postings(term)
            sums[holding] += gained * (sums[holding] > 0)
            scores = sums[docs]
        return docs, scores

    def _lookup(self, term: _Term, docs: Docs) -> Scores:
        """Returns the term's score in each of some documents, 0 where it is not."""
        row = self._rows.get(term.place)
        if row is not None:
            scores: Scores = term.scores[self._columns[row][docs]]
            return scores
        span = self._docs[term.start : term.end]
        places = np.minimum(span.searchsorted(docs), len(span) - 1)
        return np.where(span[places] == docs, term.scores[self._codes[term.start + places]], 0.0)

    def _ranked(self, docs: Docs, scores: Scores, k: int) -> list[tuple[int, float]]:
        """Returns the k best products by score in single precision; equals by their place among equals."""
        values = scores.astype(np.float32)
        if len(values) > k:
            least = np.partition(values, len(values) - k)[-k]
            kept = np.flatnonzero(values >= least)
            docs, values = docs[kept], values[kept]
        order = np.lexsort((self._ties[docs], -values))[:k]
        return list(zip(self._products[docs[order]].tolist(), values[order].tolist(), strict=True))


def _map(folder: Path, name: str) -> NDArray[Any]:
    """Maps an array; plain, since slices of `numpy.memmap` cost several times more."""
    return np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r"))


def _bytes(path: Path) -> NDArray[np.uint8]:
    if not path.stat().st_size:
        return np.zeros(0, np.uint8)
    return np.asarray(np.memmap(path, np.uint8, "r"))
