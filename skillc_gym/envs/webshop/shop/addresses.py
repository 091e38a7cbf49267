"""Addresses of pages: every page of the shop as a relative address that says all there is to know of it.

``item?asin=B0...&q=red+rug&page=1&o.color=red&seen=B0...`` is a product's page, found as a result of "red rug", with an
option chosen and one product looked at. An address holds no goal and no session.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode

from skillc_gym.envs.webshop.shop.pages import SUB_PAGES, Page

__all__ = ["Address", "address_of", "read_address"]

_PATHS = {"index": "home", "results": "results", "item": "item", "sub": "details", "done": "receipt"}
_KINDS = {path: kind for kind, path in _PATHS.items()}
_OPTION = "o."
_MOST_FIELDS = 10_000
_LAST_PAGE = 1_000_000


class Address(NamedTuple):
    """An address, taken apart; its products are named by asin and may not exist.

    Attributes:
        kind: The kind of page, as in `Page`.
        words: The query.
        number: The number of the page of results.
        asin: The product looked at, "" for none.
        sub: The sub page.
        options: The chosen options as (group, value).
        visited: The products looked at.
        hits: The products found, where searching again would find others; else empty.
    """

    kind: str
    words: str = ""
    number: int = 0
    asin: str = ""
    sub: str = ""
    options: tuple[tuple[str, str], ...] = ()
    visited: tuple[str, ...] = ()
    hits: tuple[str, ...] = ()


def address_of(page: Page, asin_of: Callable[[int], str], *, hits: Sequence[int] = ()) -> str:
    """Writes the address of a page.

    Args:
        page: The page.
        asin_of: The asin of a product by its index.
        hits: The products found, where the query alone does not tell them.
    """
    pairs: list[tuple[str, str]] = []
    if page.product >= 0:
        pairs.append(("asin", asin_of(page.product)))
    if page.sub:
        pairs.append(("tab", page.sub))
    if page.kind != "index":
        pairs += [("q", page.words), ("page", str(page.number))]
    pairs += [(_OPTION + group, value) for group, value in page.options]
    pairs += [("seen", asin_of(product)) for product in sorted(page.visited)]
    pairs += [("hit", asin_of(product)) for product in hits]
    query = urlencode(pairs, errors="surrogatepass")
    return f"{_PATHS[page.kind]}?{query}" if query else _PATHS[page.kind]


def read_address(address: str) -> Address | None:
    """Takes an address apart; None for one that no page of the shop has."""
    path, _, query = address.partition("?")
    try:
        pairs = parse_qsl(query, keep_blank_values=True, errors="surrogatepass", max_num_fields=_MOST_FIELDS)
    except ValueError:
        return None
    found = {name: value for name, value in pairs if name in ("asin", "tab", "q", "page")}
    number = found.get("page", "0")
    if path not in _KINDS or not (number.isascii() and number.isdecimal() and len(number) <= len(str(_LAST_PAGE))):
        return None
    kind, asin, sub = _KINDS[path], found.get("asin", ""), found.get("tab", "")
    if kind == "index":
        return Address("index")
    searched = bool(found.get("q")) and "page" in found
    if not searched or (kind != "results") != bool(asin) or (kind == "sub") != (sub in SUB_PAGES):
        return None
    options = tuple((name[len(_OPTION) :], value) for name, value in pairs if name.startswith(_OPTION))
    visited, hits = (tuple(value for name, value in pairs if name == key) for key in ("seen", "hit"))
    return Address(kind, found["q"], int(number), asin, sub, options, visited, hits)
