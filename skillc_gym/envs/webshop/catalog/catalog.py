"""A built catalogue: products and their search index, read-only, mapped by all processes of a host.

Pages in the modes "text" and "text_rich" mark their parts by ``[SEP]``, ``[button] ... [button_]`` and the like, and
upstream puts the products' text between these as it is: a title can draw a button, or a whole page. An escaped
catalogue makes such text harmless.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from skillc_gym.envs.webshop.catalog.build import FORMAT, KIND, read_listing, read_record
from skillc_gym.envs.webshop.catalog.product import Listing, Product, changed_texts, in_texts
from skillc_gym.envs.webshop.search.searcher import SearchIndex
from skillc_gym.envs.webshop.workplace import mapped, mapped_bytes
from skillc_gym.errors import CatalogError, MissingDataError

_Read = TypeVar("_Read")
_REMEMBERED, _REMEMBERED_ESCAPED = 256, 1 << 10
_MARK = re.compile(r"\[(\s*(?:SEP|(?:clicked\s+)?button_?)\s*)\]", re.IGNORECASE)


class Note(NamedTuple):
    """What became of a row: "skipped", "mended" (something was left empty) or "truncated" (the file breaks off).

    ``row`` is -1 where it was no row, but a human instruction or a file.
    """

    row: int
    asin: str
    action: str
    reason: str

    def __str__(self) -> str:
        place = f"row {self.row} {self.asin}" if self.row >= 0 else self.asin or "file"
        return f"{place}: {self.action}: {self.reason}"


class LoadReport:
    """What loading did: ``rows``, ``products``, rows ``skipped`` and ``mended``; it iterates over `Note`."""

    def __init__(self, folder: Path, products: int, counts: Mapping[str, int]) -> None:
        self.counts, self.products, self._path = dict(counts), products, folder / "report.jsonl"
        self.rows = self.counts.get("rows", 0)
        self.skipped, self.mended = self.counts.get("skipped", 0), self.counts.get("mended", 0)
        self.truncated = bool(self.counts.get("truncated", 0))

    def __iter__(self) -> Iterator[Note]:
        with self._path.open(encoding="ascii") as file:
            for line in file:
                yield Note(**json.loads(line))

    def __str__(self) -> str:
        cut = "; a file breaks off" if self.truncated else ""
        return f"{self.rows:,} rows: {self.products:,} products ({self.mended:,} notes), {self.skipped:,} skipped{cut}"


class Catalog:
    """An opened catalogue: a folder that `build_catalog` wrote, in which files derived from it may be kept.

    ``sha256`` is the hash of all products' content, ``load_report`` says what loading did with the rows.
    MissingDataError if there is no catalogue in the folder, CatalogError if it is damaged, or of another version.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).absolute()
        manifest = self._manifest = read_manifest(self.folder)
        self._size = int(manifest["products"])
        self.sha256 = str(manifest["sha256"])
        self.load_report = LoadReport(self.folder, self._size, manifest["report"])
        try:
            self._ends, self._asins, self._order = mapped(self.folder, "ends", "asins", "asin_order")
            self._records = mapped_bytes(self.folder / "products.bin", int(self._ends[-1]))
            self._index = SearchIndex(self.folder, int(manifest["index"]["documents"]), self._size)
        except (OSError, ValueError, IndexError) as error:
            raise self._damaged(error) from error
        self.product: Callable[[int], Product] = lru_cache(_REMEMBERED)(self._product)
        self._human: dict[str, list[dict[str, Any]]] | None = None

    def __len__(self) -> int:
        return self._size

    def __reduce__(self) -> tuple[Callable[[str], Catalog], tuple[str]]:
        return open_built, (str(self.folder),)

    @property
    def in_place(self) -> bool:
        """Whether its folder still holds this catalogue, and no other one was built in its place."""
        try:
            return read_manifest(self.folder) == self._manifest
        except (MissingDataError, CatalogError):
            return False

    def index_of(self, asin: str) -> int | None:
        """Returns the index of the product of that id, None if there is none."""
        wanted = asin.encode("utf-8", "surrogatepass")
        if not wanted or len(wanted) > self._asins.itemsize or b"\0" in wanted:
            return None
        place = int(self._asins.searchsorted(np.bytes_(wanted), sorter=self._order))
        if place < self._size and self._asins[self._order[place]] == wanted:
            return int(self._order[place])
        return None

    def search(self, query: str, k: int = 50) -> list[int]:
        """Returns the indices of the k best products, best first; none when no word matches."""
        return [index for index, _ in self.search_scores(query, k)]

    def search_scores(self, query: str, k: int = 50) -> list[tuple[int, float]]:
        """Returns the k best products as (index, score), best first; scores in single precision, not rounded."""
        return self._index.top(query, k)

    def human_instructions(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """Returns upstream's human instructions per asin; rows have instruction, its attributes and its options."""
        if self._human is None:
            try:
                self._human = json.loads((self.folder / "human.json").read_text("ascii"))
            except (OSError, ValueError) as error:
                raise self._damaged(error) from error
        return self._human

    def listing(self, index: int) -> Listing:
        """Returns what a list of results shows of a product."""
        return self._read(read_listing, index)

    def asin(self, index: int) -> str:
        """Returns a product's id."""
        return self.listing(index).asin

    def _product(self, index: int) -> Product:
        return self._read(read_record, index)

    def _read(self, read: Callable[[bytes, int], _Read], index: int) -> _Read:
        try:
            return read(self._record(index), index)
        except ValueError as error:
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> CatalogError:
        return CatalogError(f"The catalogue {self.folder} is damaged ({error}); build it again.")

    def _record(self, index: int) -> bytes:
        if not 0 <= index < self._size:
            raise IndexError(f"product {index} of {self._size}")
        return self._records[self._ends[index] : self._ends[index + 1]]


def open_built(folder: str) -> Catalog:
    """Returns the catalogue in a folder: one object for the whole process, until another is built in its place."""
    manifest = Path(folder) / "manifest.json"
    state = manifest.stat() if manifest.is_file() else None
    return _opened(folder, state and (state.st_ino, state.st_size, state.st_mtime_ns))


@lru_cache(32)
def _opened(folder: str, state: tuple[int, ...] | None) -> Catalog:
    return Catalog(folder)


def read_manifest(folder: Path) -> dict[str, Any]:
    """Returns what a built catalogue says of itself; raises as `Catalog` does."""
    path = folder / "manifest.json"
    if not path.is_file():
        raise MissingDataError(
            f"{folder} holds no built catalogue (no manifest.json); skillc tools make-catalog builds one."
        )
    try:
        manifest = json.loads(path.read_text("ascii"))
        kind, version = manifest["kind"], manifest["format"]
    except (ValueError, KeyError, TypeError) as error:
        raise CatalogError(f"{path} is no catalogue's manifest ({error}); build the catalogue again.") from error
    if (kind, version) != (KIND, FORMAT):
        raise CatalogError(
            f"{folder} is a {kind} of format {version}, this version reads {KIND} of format {FORMAT}; build it again "
            "with skillc tools make-catalog."
        )
    if missing := [key for key in ("products", "sha256", "report", "index", "source") if key not in manifest]:
        raise CatalogError(f"{path} lacks {', '.join(missing)}; build the catalogue again.")
    return dict(manifest)


def escape_marks(text: str) -> str:
    """Writes the marks of pages in round brackets: ``[SEP]`` becomes ``(SEP)``."""
    return _MARK.sub(r"(\1)", text) if "[" in text else text


class EscapedCatalog:
    """A catalogue for the pages of the shop, whose products' text holds no mark; it searches the original."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog, self.index_of, self.search = catalog, catalog.index_of, catalog.search
        self.product = lru_cache(_REMEMBERED_ESCAPED)(self._product)

    def __len__(self) -> int:
        return len(self._catalog)

    def asin(self, index: int) -> str:
        """Returns a product's id as it is, for addresses."""
        return self._catalog.asin(index)

    def listing(self, index: int) -> Listing:
        """Returns what a list of results shows of a product."""
        listing = self._catalog.listing(index)
        return replace(listing, asin=escape_marks(listing.asin), title=escape_marks(listing.title))

    def _product(self, index: int) -> Product:
        product = self._catalog.product(index)
        changed = changed_texts(product, partial(in_texts, escape_marks))
        changed.pop("main_image", None)
        return replace(product, **changed) if changed else product
