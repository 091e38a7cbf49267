"""Reading JSON files of any size piece by piece: arrays element by element, objects entry by entry."""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, NamedTuple

from skillc_gym.errors import CatalogError, MissingDataError

_CHUNK = 1 << 22
_OPENERS: dict[str, Callable[..., IO[str]]] = {".xz": lzma.open, ".gz": gzip.open}
_BROKEN = (OSError, EOFError, lzma.LZMAError, UnicodeDecodeError)
_LONGEST_VALUE = 1 << 26
"""A single product or entry beyond this is no product: a small archive can hold what no memory can."""
_LONGEST_NUMBER = 400
_LONGEST_MARK = len("\\uD83D\\uDE00")
_SPACE = " \t\n\r"


class Element(NamedTuple):
    """One element of a file's array, or one entry of its object: its key ("" in an array) and the parsed JSON."""

    key: str
    value: Any


class HugeNumber:
    """A number of more digits than any figure of a product has: no text, no list, nothing that a row may hold."""


def _integer(digits: str) -> int | HugeNumber:
    # Python refuses to read thousands of digits; one such number would cost the whole file.
    return int(digits) if len(digits) <= _LONGEST_NUMBER else HugeNumber()


class _Text:
    """A window over a file's text that grows at its end and is cut at its beginning."""

    def __init__(self, path: Path) -> None:
        self.path, self.number = path, 0
        self._file = open_text(path)
        self._decoder = json.JSONDecoder(strict=False, parse_int=_integer)
        self._buffer, self._place, self._ended = "", 0, False

    def close(self) -> None:
        self._file.close()

    def peek(self) -> str:
        """Returns the next character that is no space, "" at the end."""
        while True:
            while self._place < len(self._buffer):
                if self._buffer[self._place] not in _SPACE:
                    return self._buffer[self._place]
                self._place += 1
            if not self._grow():
                return ""

    def take(self, expected: str) -> str:
        """Passes one of the expected characters and returns it."""
        found = self.peek()
        if not found or found not in expected:
            wanted = " or ".join(repr(mark) for mark in expected)
            raise self.broken(f"expected {wanted}, got {found!r}" if found else f"it ends where {wanted} should follow")
        self._place += 1
        return found

    def value(self) -> Any:
        """Parses one value; reads on for as long as it is not whole."""
        self.peek()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._buffer, self._place)
            except RecursionError:
                raise self.broken("nested too deeply") from None
            except json.JSONDecodeError as error:
                # Reading on may mend an error at the window's end, or in a string that runs to it.
                cut = error.msg.startswith("Unterminated") or error.pos > len(self._buffer) - _LONGEST_MARK
                if not (cut and self._grow()):
                    raise self.broken(error.msg) from None
                continue
            if end == len(self._buffer) and self._grow():
                continue
            self._place = end
            return value

    def broken(self, why: str) -> CatalogError:
        return CatalogError(
            f"{self.path} cannot be read to its end: {self.number:,} whole elements, then {why}. It may be cut off; "
            "fetch it again, or keep the whole ones with `skillc tools make-catalog --accept-truncated`."
        )

    def _grow(self) -> bool:
        """Reads on, at least as much as is still open, so that a long value is parsed few times."""
        if self._ended:
            return False
        if len(self._buffer) - self._place > _LONGEST_VALUE:
            raise self.broken(f"a value of more than {_LONGEST_VALUE:,} characters")
        try:
            more = self._file.read(max(_CHUNK, len(self._buffer) - self._place))
        except _BROKEN as error:
            raise self.broken(f"{type(error).__name__}: {error}") from error
        self._ended = not more
        self._buffer, self._place = self._buffer[self._place :] + more, 0
        return bool(more)


def elements(path: Path) -> Iterator[Element]:
    """Yields the elements of the array that a file holds, plain or ``.xz`` or ``.gz``, in bounded memory.

    Raises:
        MissingDataError: If there is no such file.
        CatalogError: If it holds no array, or breaks off; after the elements before the break.
    """
    return _walk(path, "[]", keyed=False)


def entries(path: Path) -> Iterator[Element]:
    """Yields the entries of the object that a file holds; otherwise as `elements`."""
    return _walk(path, "{}", keyed=True)


def _walk(path: Path, brackets: str, *, keyed: bool) -> Iterator[Element]:
    text = _Text(path)
    try:
        text.take(brackets[0])
        if text.peek() == brackets[1]:
            return
        while True:
            key = text.value() if keyed else ""
            if keyed:
                text.take(":")
            yield Element(key, text.value())
            text.number += 1
            if text.take("," + brackets[1]) == brackets[1]:
                return
    finally:
        text.close()


def first_mark(path: Path) -> str:
    """Returns the first character of a file that is no space: tells an array from an object."""
    text = _Text(path)
    try:
        return text.peek()
    finally:
        text.close()


def open_text(path: Path) -> IO[str]:
    """Opens a text file, plain or compressed."""
    if not path.is_file():
        raise MissingDataError(f"There is no file {path}.")
    opener = _OPENERS.get(path.suffix)
    return opener(path, "rt", encoding="utf-8-sig") if opener else path.open(encoding="utf-8-sig")


def digest(path: Path) -> str:
    """Returns the sha256 of a file's bytes; an unchanged file is read once per process."""
    state = path.stat()
    return _digest(path, state.st_size, state.st_mtime_ns)


@lru_cache(64)
def _digest(path: Path, size: int, changed: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
