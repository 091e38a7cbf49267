"""The catalogue: products and their search index, read-only, shared by all environments of a host.

catalog = open_catalog("data/webshop")
catalog.product(catalog.search("red leather shoes")[0]).title
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from skillc_gym.webshop.product import Product

__all__ = ["Catalog", "Product", "Source", "open_catalog"]

Source = str | Path | Mapping[str, Any] | None


class Catalog(Protocol):
    """What environments use of a catalogue."""

    sha256: str

    def __len__(self) -> int:
        """The number of products."""

    def __hash__(self) -> int:
        """A catalogue is the object it is: goals and pages are remembered per catalogue."""

    def product(self, index: int, /) -> Product:
        """Returns a product; the newest few are remembered."""

    def asin(self, index: int) -> str:
        """Returns a product's id, without reading the product."""

    def index_of(self, asin: str) -> int | None:
        """Returns the index of the product of that id, None if there is none."""

    def search(self, query: str, k: int = 50) -> list[int]:
        """Returns the indices of the k best products, best first; none when no word matches."""

    def search_scores(self, query: str, k: int = 50) -> list[tuple[int, float]]:
        """Returns the k best products as (index, score), best first."""

    def scalar_price(self, index: int, seed: int = 0) -> float:
        """Returns a product's one price: its own, or for a range one drawn from the seed."""

    def human_instructions(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """Returns upstream's human instructions (rows as in ``items_human_ins.json``) per asin of this catalogue."""


def open_catalog(source: Source = None, **generator: Any) -> Catalog:
    """Opens a catalogue; the same source gives the same object within a process.

    Args:
        source: A folder made by ``scripts/make_catalog.py``, a folder with upstream's JSON files, a mapping
            ``{"products": path, "attributes": path, "human_goals": path}``, or "generated".
        generator: With "generated": ``size``, ``seed``.
    """
    raise NotImplementedError
