"""Where a catalogue comes from: upstream's JSON files, of any size, read element by element or entry by entry."""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
import os
import re
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import IO, Any

from skillc_gym.envs.webshop.catalog.build import CatalogBuilder
from skillc_gym.envs.webshop.catalog.product import writable
from skillc_gym.errors import CatalogError, ConfigError, MissingDataError, require_name
from skillc_gym.values import require_switch, require_whole

_CHUNK = 1 << 22
_PIECE = 1 << 13
_OPENERS: dict[str, Callable[..., IO[str]]] = {".xz": lzma.open, ".gz": gzip.open}
_BROKEN = (OSError, EOFError, lzma.LZMAError, zlib.error, UnicodeDecodeError)
_LONGEST_VALUE = 1 << 26
"""A single product or entry beyond this is no product: a small archive can hold what no memory can."""
_LONGEST_NUMBER = 400
_LONGEST_MARK = len("\\uD83D\\uDE00")
_NO_SPACE = re.compile(r"[^ \t\n\r]")

Element = tuple[str, Any]
"""One element of a file's array, or one entry of its object: its key ("" in an array) and the parsed JSON."""


class _Text:
    """A window over a file's text that grows at its end and is cut at its beginning."""

    def __init__(self, path: Path) -> None:
        self.path, self.number = path, 0
        self._file: IO[str] = _OPENERS.get(path.suffix, open)(path, "rt", encoding="utf-8-sig")
        # Python refuses to read thousands of digits; one such number would cost the whole file. No row may hold any.
        self._decoder = json.JSONDecoder(
            strict=False, parse_int=lambda digits: (int if len(digits) <= _LONGEST_NUMBER else float)(digits)
        )
        self._buffer, self._place, self._ended = "", 0, False
        self._failure: Exception | None = None

    def close(self) -> None:
        self._file.close()

    def peek(self) -> str:
        """Returns the next character that is no space, "" at the end."""
        while not (found := _NO_SPACE.search(self._buffer, self._place)):
            self._place = len(self._buffer)
            if not self._grow():
                return ""
        self._place = found.start()
        return found[0]

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
            # A number may go on behind the window's end, as in 22|.75 or 1e+|7.
            if end >= len(self._buffer) - len("e+") and not self._ended:
                self._grow()
                continue
            self._place = end
            return value

    def end(self) -> None:
        """Refuses what follows (ConfigError): two files in one would be read as the first alone."""
        if found := self.peek():
            raise ConfigError(f"{self.path}: {found!r} follows its {self.number:,} elements; keep what it holds apart.")

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
        more = self._more(max(_CHUNK, len(self._buffer) - self._place))
        if self._failure and not more:
            raise self.broken(f"{type(self._failure).__name__}: {self._failure}") from self._failure
        self._ended = not more
        self._buffer, self._place = self._buffer[self._place :] + more, 0
        return bool(more)

    def _more(self, wanted: int) -> str:
        """Reads piece by piece: of one that breaks off, all before it is still there."""
        pieces: list[str] = []
        while wanted > 0 and not self._failure:
            try:
                pieces.append(self._file.read(min(wanted, _PIECE)))
            except _BROKEN as error:
                self._failure = error
                break
            if not pieces[-1]:
                break
            wanted -= len(pieces[-1])
        return "".join(pieces)


def elements(path: Path, *, keyed: bool = False) -> Iterator[Element]:
    """Yields the elements of a file's array in bounded memory; CatalogError where it breaks off, after those before.

    ``keyed``: the file holds an object, whose entries these are; CatalogError if it holds the other one of the two.
    """
    brackets = "{}" if keyed else "[]"
    with closing(_Text(path)) as text:
        if text.peek() == (other := "[" if keyed else "{"):
            raise CatalogError(
                f"{path} begins with {other!r}, where {brackets[0]!r} is due: products are an array, attributes and "
                "human goals objects by asin. Is it another one of upstream's files?"
            )
        text.take(brackets[0])
        if text.peek() == brackets[1]:
            text.take(brackets[1])
            return text.end()
        while True:
            key = text.value() if keyed else ""
            if not isinstance(key, str):
                raise text.broken(f"expected a text as key, got {type(key).__name__}")
            if keyed:
                text.take(":")
            yield key, text.value()
            text.number += 1
            if text.take("," + brackets[1]) == brackets[1]:
                return text.end()


def first_mark(path: Path) -> str:
    """Returns the first character of a file that is no space: tells an array from an object."""
    with closing(_Text(path)) as text:
        return text.peek()


def digest(path: Path) -> str:
    """Returns the sha256 of a file's bytes; an unchanged file is read once per process."""
    state = path.stat()
    return _digest(path, state.st_size, state.st_mtime_ns)


@lru_cache(64)
def _digest(path: Path, size: int, changed: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


FILES = {
    "products": ("items_shuffle", "items_shuffle_1000", "products"),
    "attributes": ("items_ins_v2", "items_ins_v2_1000", "attributes"),
    "human_goals": ("items_human_ins", "human_goals"),
}
"""The names by which a folder's files are found; upstream's full set is preferred to its first thousand."""
_ENDINGS = (".json", ".json.xz", ".json.gz")
FETCH = (
    "Point WEBSHOP_DATA (or data=) at a folder with upstream's items_shuffle*.json and items_ins_v2*.json (and "
    "items_human_ins.json for human goals), or play generated products with data='generated'. The full catalogue "
    "comes with upstream's ./setup.sh -d all; docs/webshop.md tells how it is built."
)


class JsonSource:
    """Upstream's files; MissingDataError if one is not there.

    Args:
        products: The rows of products, an array.
        attributes: Attributes and synthetic instructions, an object by asin; None: nothing has any.
        human_goals: Human instructions, an object by asin; None: there are none.
        num_products: Reads only so many rows, counted before bad ones are skipped, as upstream does.
        accept_truncated: Keeps the whole rows of a file that breaks off, and reports that.
    """

    def __init__(
        self,
        products: str | Path,
        attributes: str | Path | None = None,
        human_goals: str | Path | None = None,
        *,
        num_products: int | None = None,
        accept_truncated: bool = False,
    ) -> None:
        self._products = _file(products)
        self._attributes, self._human = (_file(path) if path else None for path in (attributes, human_goals))
        self._limit = None if num_products is None else require_whole("num_products", num_products, 1)
        self._accept = require_switch("accept_truncated", accept_truncated)

    @classmethod
    def of_mapping(cls, source: Mapping[str, Any]) -> JsonSource:
        """Reads ``{"products": path, "attributes": path, "human_goals": path}``, with options as above."""
        known = (*FILES, "num_products", "accept_truncated")
        for name in source:
            require_name("part of the data", name, known)
        if "products" not in source:
            raise ConfigError(f"data names no 'products' file, only {', '.join(source) or 'nothing'}. {FETCH}")
        return cls(**source)

    @classmethod
    def of_folder(cls, folder: Path, **options: Any) -> JsonSource:
        """Finds upstream's files in a folder."""
        products, attributes, human_goals = (_find(folder, part) for part in FILES)
        if products is None:
            names = ", ".join(f"{name}.json" for name in FILES["products"])
            if (folder / "manifest.json").is_file():
                raise ConfigError(f"{folder} is a built catalogue already: open it with data={folder}.")
            raise MissingDataError(f"{folder} holds none of {names}, and no built catalogue. {FETCH}")
        return cls(products, attributes, human_goals, **options)

    def identity(self) -> dict[str, Any]:
        """Names the content: equal identities give equal catalogues."""
        files = zip(FILES, (self._products, self._attributes, self._human), strict=True)
        hashes = {part: digest(path) for part, path in files if path}
        return {**hashes, "num_products": self._limit, "accept_truncated": self._accept}

    def build(self, builder: CatalogBuilder) -> None:
        """Adds all rows to a builder; CatalogError if a file cannot be read to its end."""
        with tempfile.TemporaryFile() as file:
            attributes = _Attributes(file)
            if self._attributes:
                for asin, entry in self._whole(self._attributes, builder, keyed=True):
                    attributes.add(writable(asin), entry)
            for _, row in islice(self._whole(self._products, builder), self._limit):
                builder.add(row, attributes.get)
        if self._human:
            for asin, entry in self._whole(self._human, builder, keyed=True):
                builder.add_human(writable(asin), entry)

    def _whole(self, path: Path, builder: CatalogBuilder, *, keyed: bool = False) -> Iterator[Element]:
        try:
            yield from elements(path, keyed=keyed)
        except CatalogError as error:
            if not self._accept:
                raise
            builder.report("truncated", str(error))


class _Attributes:
    """Entries by asin, kept in a temporary file: memory holds their places only."""

    def __init__(self, file: Any) -> None:
        self._file, self._places, self._end = file, dict[str, int](), 0

    def add(self, asin: str, entry: Any) -> None:
        self._file.seek(self._end)
        self._places[asin] = self._end
        self._end += self._file.write(json.dumps(entry).encode("ascii") + b"\n")

    def get(self, asin: str) -> object:
        place = self._places.get(asin)
        if place is None:
            return None
        self._file.seek(place)
        return json.loads(self._file.readline())


def _find(folder: Path, part: str) -> Path | None:
    for name in FILES[part]:
        for ending in _ENDINGS:
            path = folder / f"{name}{ending}"
            # Upstream's folder of baselines has another file of the name human_goals.json: an array of texts.
            if path.is_file() and (part != "human_goals" or first_mark(path) == "{"):
                return path
    return None


def _file(path: object) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise ConfigError(f"A file of the data is named by its path, got {path!r}.")
    path = Path(path).expanduser()
    if not path.is_file():
        raise MissingDataError(f"There is no file {path}. {FETCH}")
    return path.resolve()
