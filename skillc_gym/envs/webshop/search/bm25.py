"""BM25 as Lucene computes it: one byte for a document's length, single precision for every term's score.

The ranking is part of the benchmark, so it is Lucene's to the digit. Libraries that were weighed are not: bm25s takes
exact lengths and has no rule for equal scores; tantivy fixes its constants, tokenizer and stemmer. Sparse matrices of
scipy would hold a score a posting, where two bytes for (frequency, length) and numpy do the same in half the space;
numba adds 63 MB and a start of its own in every process, for a search that has no loop to compile.
"""

from __future__ import annotations

import math
from typing import cast

import numpy as np
from numpy.typing import NDArray

K1, B = 0.9, 0.4
_EXACT = 24
"""Lengths below this have a byte of their own; longer ones keep four significant bits."""


def norms(lengths: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Returns the byte that Lucene keeps of each length, a number of terms."""
    return cast("NDArray[np.uint8]", (np.searchsorted(LENGTHS, lengths, side="right") - 1).astype(np.uint8))


def _length(byte: int) -> int:
    # Lucene's SmallFloat.byte4ToInt: above the exact ones, three bits of mantissa with a hidden one, and a shift.
    if byte < _EXACT:
        return byte
    bits, shift = (byte - _EXACT) & 7, ((byte - _EXACT) >> 3) - 1
    return _EXACT + (bits if shift < 0 else (bits | 8) << shift)


LENGTHS: NDArray[np.int64] = np.array([_length(byte) for byte in range(256)], dtype=np.int64)
"""The length that each byte stands for."""


def inverse_norms(average: np.float32) -> NDArray[np.float32]:
    """Returns 1 / (k1 (1 - b + b length / average)) for each byte; documents without terms count in no average."""
    # All operands are single precision, as in Lucene: a double in between would round some scores the other way.
    k1, b, one = np.float32(K1), np.float32(B), np.float32(1)
    return one / (k1 * ((one - b) + b * LENGTHS.astype(np.float32) / average))


def saturation(frequencies: NDArray[np.int64], inverse: NDArray[np.float32]) -> NDArray[np.float32]:
    """Returns 1 + tf / norm; the score of a term of weight w is then w - w / this."""
    return np.float32(1) + frequencies.astype(np.float32) * inverse


def idf(documents: int, holding: int) -> np.float32:
    """Returns a term's weight for being rare: ``documents`` have any term, ``holding`` of them have this one."""
    # The 1 inside the logarithm is Lucene's: without it, a term that most documents hold would count against them.
    return np.float32(math.log(1 + (documents - holding + 0.5) / (holding + 0.5)))
