"""Pages of the shop as values, the parsing of actions, and the addresses of pages."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode

BASE_URL = "http://127.0.0.1:3000"
SUB_PAGES = ("Description", "Features", "Reviews", "Attributes")
_PATHS = {"index": "home", "results": "results", "item": "item", "sub": "details", "done": "receipt"}
_KINDS = {path: kind for kind, path in _PATHS.items()}
_OPTION = "o."
_MOST_FIELDS = 10_000
_LAST_PAGE = 1_000_000
MAX_ACTION = 4_096


class Page(NamedTuple):
    """Where a customer is and what was chosen: immutable, small, picklable.

    Attributes:
        kind: "index", "results", "item", "sub" or "done".
        words: The query as it was searched.
        number: The number of the page of results, from 1.
        hits: The products found, by index, best first.
        product: The product looked at, by index; -1 for none. ``sub`` is one of its `SUB_PAGES`.
        options: The chosen options as (group, value), in the order in which the groups were first chosen.
        visited: The products looked at since the index page.
        reward: The score of the purchase, on the page "done".
        cut: Whether the query had more different terms than a search uses.
    """

    kind: str
    words: str = ""
    number: int = 0
    hits: tuple[int, ...] = ()
    product: int = -1
    sub: str = ""
    options: tuple[tuple[str, str], ...] = ()
    visited: frozenset[int] = frozenset()
    reward: float = 0.0
    cut: bool = False

    def results(self, number: int) -> Page:
        """The given page of results of the same query; product and options are forgotten."""
        return Page("results", self.words, number, self.hits, visited=self.visited, cut=self.cut)

    def item(self, product: int) -> Page:
        """The page of a product."""
        return self._replace(kind="item", product=product, visited=self.visited | {product})

    def chosen(self, group: str, value: str) -> Page:
        """The same page with another choice."""
        return self._replace(options=tuple({**dict(self.options), group: value}.items()))


HOME = Page("index")


def parse_action(action: str) -> tuple[str, str] | None:
    """Splits ``name[argument]`` into name and argument in lower case, None for another form: upstream's greedy rule.

    The name is all before the last bracket that something and a closing bracket follow, so ``search[a [b] c]`` has an
    odd name. Only the first line counts; what follows the last closing bracket is ignored.
    """
    line = action.split("\n", 1)[0]
    end = line.rfind("]")
    start = line.rfind("[", 1, end - 1) if end > 2 else -1
    return None if start < 1 else (line[:start], line[start + 1 : end].lower())


def read_action(
    action: str, *, brackets: bool, is_there: Callable[[str], bool] = lambda label: False
) -> tuple[str, str] | None:
    """Reads ``search[words]`` or ``click[label]`` in lower case, else None; ``brackets``: labels may hold these.

    Of a command of several lines the first one counts, unless the label of them all ``is_there``.
    """
    end = action.rfind("]")
    whole = action[6:end].lower() if brackets and action.startswith("click[") and end > 6 else None
    if whole is not None and "\n" in whole and is_there(whole):
        return "click", whole
    parsed = parse_action(action)
    if parsed is not None and parsed[0] in ("search", "click"):
        return parsed
    return None if whole is None else ("click", whole)


def url_of(page: Page, session: str, asin: str) -> str:
    """Returns upstream's address of a page; ``asin``: the product's, where the page shows one."""
    options, words = dict(page.options), page.words.replace(" ", "+")
    place = f"{session}/{asin}/{words}/{page.number}"
    match page.kind:
        case "index":
            return f"{BASE_URL}/{session}"
        case "results":
            return f"{BASE_URL}/search_results/{session}/{words}/{page.number}"
        case "item":
            return f"{BASE_URL}/item_page/{place}/{json.dumps(options)}"
        case "sub":
            return f"{BASE_URL}/item_sub_page/{place}/{page.sub}/{options}"
        case _:
            return f"{BASE_URL}/done/{session}/{asin}/{options}"


class Address(NamedTuple):
    """An address, taken apart: as `Page`, but its products are named by asin and may not exist."""

    kind: str
    words: str = ""
    number: int = 0
    asin: str = ""
    sub: str = ""
    options: tuple[tuple[str, str], ...] = ()
    visited: tuple[str, ...] = ()
    hits: tuple[str, ...] = ()


def address_of(page: Page, asin_of: Callable[[int], str], *, hits: Sequence[int] = ()) -> str:
    """Writes the address of a page: relative, it says all there is to know of it, but the goal and the session.

    ``item?asin=B0...&q=red+rug&page=1&o.color=red&seen=B0...`` is a product's page, found as a result of "red rug",
    with an option chosen and one product looked at. ``hits``: those found, where the query alone does not tell them.
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


def is_receipt(address: str) -> bool:
    """Tells whether an address is of the page after a purchase."""
    return address.partition("?")[0] == _PATHS["done"]


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
