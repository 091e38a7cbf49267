"""Where a catalogue comes from: upstream's JSON files, found by their names in a folder or named one by one."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from skillc_gym.envs.webshop.catalog.build import CatalogBuilder
from skillc_gym.envs.webshop.catalog.loader import writable
from skillc_gym.envs.webshop.catalog.streams import Element, digest, elements, entries, first_mark
from skillc_gym.errors import CatalogError, ConfigError, MissingDataError, unknown_name

FILES = {
    "products": ("items_shuffle", "items_shuffle_1000", "products"),
    "attributes": ("items_ins_v2", "items_ins_v2_1000", "attributes"),
    "human_goals": ("items_human_ins", "human_goals"),
}
"""The names by which a folder's files are found; upstream's full set is preferred to its first thousand."""
_ENDINGS = (".json", ".json.xz", ".json.gz")
FETCH = (
    "Point data at a folder with upstream's items_shuffle*.json and items_ins_v2*.json (and items_human_ins.json for "
    "human goals), or play generated products with data='generated'. The full catalogue comes with "
    "upstream's ./setup.sh -d all; docs/webshop.md tells how it is built."
)


class JsonSource:
    """Upstream's files.

    Args:
        products: The rows of products, an array.
        attributes: Attributes and synthetic instructions, an object by asin; None: nothing has any.
        human_goals: Human instructions, an object by asin; None: there are none.
        num_products: Reads only so many rows, counted before bad ones are skipped, as upstream does.
        accept_truncated: Keeps the whole rows of a file that breaks off, and reports that.

    Raises:
        MissingDataError: If a file is not there.
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
        self._products, self._attributes = _file(products), attributes and _file(attributes)
        self._human = human_goals and _file(human_goals)
        self._limit, self._accept = num_products, accept_truncated

    @classmethod
    def of_mapping(cls, source: Mapping[str, Any]) -> JsonSource:
        """Reads ``{"products": path, "attributes": path, "human_goals": path}``, with options as above."""
        known = (*FILES, "num_products", "accept_truncated")
        for name in source:
            if name not in known:
                raise unknown_name("part of the data", name, known)
        if "products" not in source:
            raise ConfigError(f"data names no 'products' file, only {', '.join(source) or 'nothing'}. {FETCH}")
        return cls(**source)

    @classmethod
    def of_folder(cls, folder: Path, **options: Any) -> JsonSource:
        """Finds upstream's files in a folder."""
        products, attributes, human_goals = (_find(folder, part) for part in FILES)
        if products is None:
            names = ", ".join(f"{name}.json" for name in FILES["products"])
            raise MissingDataError(f"{folder} holds none of {names}, and no built catalogue. {FETCH}")
        return cls(products, attributes, human_goals, **options)

    def identity(self) -> dict[str, Any]:
        """Names the content: equal identities give equal catalogues."""
        files = {"products": self._products, "attributes": self._attributes, "human_goals": self._human}
        hashes = {part: digest(path) for part, path in files.items() if isinstance(path, Path)}
        return {**hashes, "num_products": self._limit, "accept_truncated": self._accept}

    def build(self, builder: CatalogBuilder) -> None:
        """Adds all rows to a builder; CatalogError if a file cannot be read to its end."""
        with tempfile.TemporaryFile() as file:
            attributes = _Attributes(file)
            if isinstance(self._attributes, Path):
                for entry in self._whole(entries(self._attributes), builder):
                    attributes.add(entry)
            for row in islice(self._whole(elements(self._products), builder), self._limit):
                builder.add(row.value, attributes.get)
        if isinstance(self._human, Path):
            for entry in self._whole(entries(self._human), builder):
                builder.add_human(writable(entry.key), entry.value)

    def _whole(self, parts: Iterator[Element], builder: CatalogBuilder) -> Iterator[Element]:
        try:
            yield from parts
        except CatalogError as error:
            if not self._accept:
                raise
            builder.report("truncated", str(error))


class _Attributes:
    """Entries by asin, kept in a temporary file: memory holds their places only."""

    def __init__(self, file: Any) -> None:
        self._file, self._places, self._end = file, dict[str, int](), 0

    def add(self, entry: Element) -> None:
        self._file.seek(self._end)
        self._places[writable(entry.key)] = self._end
        self._end += self._file.write(json.dumps(entry.value, default=lambda huge: None).encode("ascii") + b"\n")

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


def _file(path: str | Path) -> Path:
    path = Path(path).expanduser()
    if not path.is_file():
        raise MissingDataError(f"There is no file {path}. {FETCH}")
    return path.resolve()
