"""Building the search index of a catalogue, document by document, in bounded memory.

Documents are counted in runs that go to disk sorted by term; at the end the runs are laid behind each other, term by
term. Memory grows with the vocabulary, not with the documents.

Documents that share a text of their own (`IndexBuilder.add`) lie together, so the words of a query tend to meet in few
windows of documents. Tables say what every term can score at most in each, so that most are never looked into.
"""

from __future__ import annotations

import hashlib
import shutil
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skillc_gym.envs.webshop.search import bm25
from skillc_gym.envs.webshop.search.analyzer import analyze
from skillc_gym.envs.webshop.workplace import reserve

DENSE_SHARE, DENSE_FROM = 16, 16 * 1024
"""A term that more than one in so many documents hold also gets a column over all, in indexes of more than so many."""
WINDOW_BITS = 14
"""A window has two to this power documents."""
_TABLED = 1024
"""Terms of more postings have a row in the windows' tables; for the others, their postings are looked through."""
_RUN_TERMS = 4_000_000


def term_hash(term: str) -> int:
    """Returns the 64-bit number by which a term is found."""
    return int.from_bytes(hashlib.blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def window_edges(documents: int) -> NDArray[np.int64]:
    """Returns where the windows of so many documents begin, and the last one ends."""
    return np.arange(-(-documents >> WINDOW_BITS) + 1, dtype=np.int64) << WINDOW_BITS


class _Run(NamedTuple):
    """Where a run's postings lie in the temporary files, and how many each of its terms has."""

    start: int
    terms: NDArray[np.int32]
    counts: NDArray[np.int64]


class IndexBuilder:
    """Collects documents, then writes the index into a folder that exists."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._work = folder, folder / "runs"
        self._work.mkdir()
        self._docs_file = (self._work / "docs").open("wb")
        self._pairs_file = (self._work / "pairs").open("wb")
        self._ids: dict[str, int] = {}
        self._pending: list[int] = []
        self._lengths: list[int] = []
        self._all_lengths: list[NDArray[np.int64]] = []
        self._runs: list[_Run] = []
        self._written = self._flushed = 0
        self._shelves: dict[str, int] = {}
        self._neighbours = array("i")

    def add(self, text: str, neighbours: str = "") -> None:
        """Adds the next document; those that share the text ``neighbours`` lie together, and are found faster."""
        ids = self._ids
        # Products of one shelf share words: side by side, they fill few windows, and a search skips the others.
        self._neighbours.append(self._shelves.setdefault(neighbours, len(self._shelves)))
        before = len(self._pending)
        self._pending += [ids.setdefault(term, len(ids)) for term in analyze(text)]
        self._lengths.append(len(self._pending) - before)
        if len(self._pending) >= _RUN_TERMS:
            self._flush()

    def finish(self, ties: NDArray[np.int32]) -> dict[str, float | int]:
        """Writes the index, given each document's place among equals; returns what a search needs besides arrays."""
        self._flush()
        self._docs_file.close()
        self._pairs_file.close()
        lengths = np.concatenate(self._all_lengths)
        holding = int(np.count_nonzero(lengths))
        average = np.float32(int(lengths.sum()) / holding if holding else 1.0)
        codes, table = self._codes(average)
        products = self._order()
        self._save("saturations", table)
        self._save("products", products)
        self._save("ties", ties[products])
        self._write_postings(codes, products)
        shutil.rmtree(self._work)
        return {"documents": holding, "average_length": float(average), "terms": len(self._ids)}

    def _order(self) -> NDArray[np.int32]:
        """Returns the order in which documents lie: neighbours together, and by the order they came in."""
        rank = np.argsort(np.argsort(np.array(list(self._shelves), dtype=object)))
        places: NDArray[np.int64] = np.argsort(rank[np.frombuffer(self._neighbours, np.int32)], kind="stable")
        return places.astype(np.int32)

    def _flush(self) -> None:
        """Counts the pending terms and writes them as a run, sorted by term and document."""
        lengths = np.array(self._lengths, dtype=np.int64)
        self._all_lengths.append(lengths)
        norms = bm25.norms(lengths)
        docs = np.repeat(np.arange(len(lengths), dtype=np.int64), lengths)
        # One number per (term, document) pair, the term above: sorting lays a term's documents together.
        keys, frequencies = np.unique(np.array(self._pending, dtype=np.int64) << 32 | docs, return_counts=True)
        local = keys & 0xFFFFFFFF
        terms, counts = np.unique(keys >> 32, return_counts=True)
        # All that BM25 needs of a posting: how often the term stands there (24 bits), the document's length (a byte).
        pairs = np.minimum(frequencies, 0xFFFFFF).astype(np.uint32) << np.uint32(8) | norms[local]
        (local + self._flushed).astype(np.int32).tofile(self._docs_file)
        pairs.tofile(self._pairs_file)
        self._runs.append(_Run(self._written, terms.astype(np.int32), counts.astype(np.int64)))
        self._written += len(keys)
        self._flushed += len(lengths)
        self._pending, self._lengths = [], []

    def _codes(self, average: np.float32) -> tuple[NDArray[np.uint32], NDArray[np.float32]]:
        """Returns the distinct pairs of frequency and length with their saturations, by these; number 0 has none."""
        # There are few distinct pairs: a posting keeps a number of two bytes, a search one table of scores. As numbers
        # rise with the score, the highest number of a window bounds its scores.
        distinct = np.zeros(0, np.uint32)
        for _, _, pairs in self._read_runs():
            distinct = np.union1d(distinct, pairs)
        inverse = bm25.inverse_norms(average)
        table = bm25.saturation((distinct >> 8).astype(np.int64), inverse[distinct & 0xFF])
        order = np.argsort(table, kind="stable")
        return np.insert(distinct[order], 0, 0), np.insert(table[order], 0, 1)

    def _read_runs(self) -> Iterator[tuple[_Run, NDArray[np.int32], NDArray[np.uint32]]]:
        for run in self._runs:
            number, offset = int(run.counts.sum()), run.start * 4
            docs = np.fromfile(self._work / "docs", np.int32, number, offset=offset)
            yield run, docs, np.fromfile(self._work / "pairs", np.uint32, number, offset=offset)

    def _write_postings(self, codes: NDArray[np.uint32], products: NDArray[np.int32]) -> None:
        rank = self._write_terms()
        lies = np.argsort(products).astype(np.int32)
        totals = np.zeros(len(rank), np.int64)
        for run in self._runs:
            totals[rank[run.terms]] += run.counts
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(totals)])
        self._save("starts", starts)
        kind = np.uint16 if len(codes) <= 1 << 16 else np.uint32
        docs_out = self._array("docs", np.int32, self._written)
        codes_out = self._array("codes", kind, self._written)
        by_pair = np.argsort(codes)
        sorted_pairs, next_place = codes[by_pair], starts[:-1].copy()
        for run, docs, pairs in self._read_runs():
            terms = rank[run.terms]
            begins = np.cumsum(run.counts) - run.counts
            places = np.repeat(next_place[terms] - begins, run.counts) + np.arange(len(docs))
            docs_out[places] = lies[docs]
            codes_out[places] = by_pair[np.searchsorted(sorted_pairs, pairs)].astype(kind)
            next_place[terms] += run.counts
        _sort_postings(starts, docs_out, codes_out)
        self._write_bounds(starts, docs_out, codes_out, len(products))

    def _write_bounds(self, starts: NDArray[np.int64], docs: NDArray[Any], codes: NDArray[Any], documents: int) -> None:
        """Writes each term's highest code, and columns of codes for the terms that many documents hold."""
        highest = np.maximum.reduceat(codes, starts[:-1]) if len(codes) else codes[:0]
        self._save("highest", highest)
        self._write_windows(starts, docs, codes, documents)
        sizes = np.diff(starts)
        # Looking up a frequent term in some documents is one read of its column, instead of a search in its postings.
        dense = np.flatnonzero(sizes * DENSE_SHARE > documents) if documents > DENSE_FROM else sizes[:0]
        self._save("dense_terms", dense.astype(np.int64))
        columns = self._array("columns", codes.dtype.type, len(dense), documents)
        for row, term in enumerate(dense):
            span = slice(starts[term], starts[term + 1])
            columns[row, docs[span]] = codes[span]

    def _write_windows(
        self, starts: NDArray[np.int64], docs: NDArray[Any], codes: NDArray[Any], documents: int
    ) -> None:
        """Writes, for the terms of many postings, where those of each window begin, and their highest code there."""
        terms = np.flatnonzero(np.diff(starts) > _TABLED)
        edges = window_edges(documents)
        begins = np.empty((len(terms), len(edges)), np.int64)
        highest = np.zeros((len(terms), len(edges) - 1), codes.dtype)
        for row, term in enumerate(terms.tolist()):
            start, end = int(starts[term]), int(starts[term + 1])
            begins[row] = start + docs[start:end].searchsorted(edges)
            filled = np.flatnonzero(np.diff(begins[row]))
            highest[row, filled] = np.maximum.reduceat(codes[start:end], begins[row, filled] - start)
        self._save("window_terms", terms)
        self._save("window_starts", begins)
        self._save("window_highest", highest)

    def _write_terms(self) -> NDArray[np.int64]:
        """Writes the terms ordered by their hash, and returns each term's place."""
        hashes = np.array([term_hash(term) for term in self._ids], dtype=np.uint64)
        order = np.argsort(hashes, kind="stable")
        self._save("hashes", hashes[order])
        terms = [term.encode("utf-8", "surrogatepass") for term in self._ids]
        texts = [terms[number] for number in order.tolist()]
        (self._folder / "terms.bin").write_bytes(b"".join(texts))  # what a hash found is compared with
        self._save("term_ends", np.cumsum([0, *map(len, texts)], dtype=np.int64))
        return np.argsort(order)

    def _save(self, name: str, array: NDArray[Any]) -> None:
        np.save(self._folder / f"{name}.npy", array)

    def _array(self, name: str, kind: type, *shape: int) -> NDArray[Any]:
        path = self._folder / f"{name}.npy"
        if 0 in shape:
            self._save(name, np.zeros(shape, kind))
            return np.zeros(shape, kind)
        mapped: NDArray[Any] = np.lib.format.open_memmap(path, mode="w+", dtype=kind, shape=shape)
        reserve(path)
        return mapped


def _sort_postings(starts: NDArray[np.int64], docs: NDArray[Any], codes: NDArray[Any]) -> None:
    """Sorts the documents of every term, many terms at a time."""
    first = 0
    while first < len(starts) - 1:
        last = max(first + 1, int(np.searchsorted(starts, starts[first] + _RUN_TERMS, side="right")) - 1)
        span = slice(int(starts[first]), int(starts[last]))
        terms = np.repeat(np.arange(last - first, dtype=np.int64), np.diff(starts[first : last + 1]))
        order = np.argsort(terms << 32 | docs[span])
        docs[span], codes[span] = docs[span][order], codes[span][order]
        first = last
