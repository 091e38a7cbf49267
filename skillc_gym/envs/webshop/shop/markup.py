"""Text of products that could pass for the page's own marks, made harmless.

Pages in the modes "text" and "text_rich" mark their parts by ``[SEP]``, ``[button] ... [button_]`` and the like, and
upstream puts the products' text between these as it is: a title can draw a button, or a whole page.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from skillc_gym.envs.webshop.catalog.product import Listing, Product, changed_texts, in_texts

if TYPE_CHECKING:
    from skillc_gym.envs.webshop.catalog.catalog import Catalog

_MARK = re.compile(r"\[(\s*(?:SEP|(?:clicked\s+)?button_?)\s*)\]", re.IGNORECASE)
_REMEMBERED = 1 << 10


def escape_marks(text: str) -> str:
    """Writes the marks of pages in round brackets: ``[SEP]`` becomes ``(SEP)``."""
    return _MARK.sub(r"(\1)", text) if "[" in text else text


class EscapedCatalog:
    """A catalogue for the pages of the shop, whose products' text holds no mark; it searches the original."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog, self.index_of, self.search = catalog, catalog.index_of, catalog.search
        self.product = lru_cache(_REMEMBERED)(self._product)

    def __len__(self) -> int:
        return len(self._catalog)

    def listing(self, index: int) -> Listing:
        """Returns what a list of results shows of a product."""
        listing = self._catalog.listing(index)
        return replace(listing, asin=escape_marks(listing.asin), title=escape_marks(listing.title))

    def _product(self, index: int) -> Product:
        product = self._catalog.product(index)
        changed = changed_texts(product, partial(in_texts, escape_marks))
        changed.pop("main_image", None)
        return replace(product, **changed) if changed else product
