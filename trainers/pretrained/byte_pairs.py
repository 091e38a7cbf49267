"""Byte-pair encoding written out, to hold rebuilt tokenizers against a file's own vocabulary and merges."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = ["BytePairs"]

_GPT2 = re.compile(r"'(?:[sdmt]|ll|ve|re)| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")
"""GPT-2's split of a text, with ``re``'s classes for the letters and digits of ``regex``."""


@dataclass(frozen=True)
class BytePairs:
    """A vocabulary of byte pairs.

    Attributes:
        tokens: In the order of their numbers.
        merges: ``"left right"``, the first to be made first.
        splits_digits: Whether every digit stands alone.
    """

    tokens: Sequence[str]
    merges: Sequence[str]
    splits_digits: bool = False

    @classmethod
    def of_gguf(cls, path: Path, *, splits_digits: bool = False) -> BytePairs:
        """Reads a GGUF file's; ``gguf`` must be installed."""
        from gguf import GGUFReader

        fields = GGUFReader(path).fields
        tokens, merges = (fields[f"tokenizer.ggml.{name}"].contents() for name in ("tokens", "merges"))
        return cls(tuple(tokens), tuple(merges), splits_digits)

    def encode(self, text: str) -> list[int]:
        """The tokens' numbers; special tokens in the text are not looked for."""
        numbers = {token: number for number, token in enumerate(self.tokens)}
        ranks = {tuple(merge.split(" ")): rank for rank, merge in enumerate(self.merges)}
        return [numbers[part] for piece in self._pieces(text) for part in _merged(_signs(piece), ranks)]

    def _pieces(self, text: str) -> Iterator[str]:
        parts = re.split(r"(\d)", text) if self.splits_digits else [text]
        for part in parts:
            yield from _GPT2.findall(part)


def _merged(parts: list[str], ranks: dict[tuple[str, ...], int]) -> list[str]:
    """Makes the earliest merge, everywhere, until none is left."""
    while len(parts) > 1:
        pairs = list(itertools.pairwise(parts))
        best = min(pairs, key=lambda pair: ranks.get(pair, len(ranks)))
        if best not in ranks:
            break
        merged, left = [], list(parts)
        while left:
            pair = tuple(left[:2])
            merged.append("".join(pair) if pair == best else left[0])
            del left[: 2 if pair == best else 1]
        parts = merged
    return parts


def _signs(piece: str) -> list[str]:
    return [_byte_signs()[byte] for byte in piece.encode()]


@cache
def _byte_signs() -> dict[int, str]:
    """GPT-2's printable sign for each byte."""
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {byte: chr(256 + i) for i, byte in enumerate(others)}
