"""Pages of the shop as values, and the parsing of actions."""

from __future__ import annotations

import json
from typing import NamedTuple

__all__ = ["BASE_URL", "HOME", "SUB_PAGES", "Page", "parse_action", "read_action", "url_of"]

BASE_URL = "http://127.0.0.1:3000"
SUB_PAGES = ("Description", "Features", "Reviews", "Attributes")


class Page(NamedTuple):
    """Where a customer is and what was chosen: immutable, small, picklable.

    Attributes:
        kind: "index", "results", "item", "sub" or "done".
        words: The query as it was searched.
        number: The number of the page of results, from 1.
        hits: The products found, by index, best first.
        product: The product looked at, by index; -1 for none.
        sub: The sub page: one of `SUB_PAGES`.
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
    """Splits ``name[argument]``: upstream's greedy rule, without its quadratic search.

    The name is all before the last bracket that something and a closing bracket follow, so ``search[a [b] c]`` has
    an odd name. Only the first line counts; what follows the last closing bracket is ignored.

    Returns:
        The name, and the argument in lower case; None when there is no such form.
    """
    line = action.split("\n", 1)[0]
    end = line.rfind("]")
    start = line.rfind("[", 1, end - 1) if end > 2 else -1
    return None if start < 1 else (line[:start], line[start + 1 : end].lower())


def read_action(action: str, *, brackets: bool) -> tuple[str, str] | None:
    """Reads ``search[words]`` or ``click[label]``.

    Args:
        action: The action.
        brackets: Whether a label may hold brackets and line breaks.

    Returns:
        "search" or "click", and the words or the label in lower case; None for anything else.
    """
    parsed = parse_action(action)
    if parsed is not None and parsed[0] in ("search", "click"):
        return parsed
    label = _parse_bracketed_click(action) if brackets else ""
    return ("click", label) if label else None


def _parse_bracketed_click(action: str) -> str:
    """Returns the argument of ``click[...]`` that may hold brackets itself, in lower case; "" when there is none."""
    end = action.rfind("]")
    return action[6:end].lower() if action.startswith("click[") and end > 6 else ""


def url_of(page: Page, session: str, asin: str) -> str:
    """Returns upstream's address of a page.

    Args:
        page: The page.
        session: The name of the session.
        asin: The product's asin, where the page shows one.
    """
    words = page.words.replace(" ", "+")
    options = dict(page.options)
    match page.kind:
        case "index":
            path = session
        case "results":
            path = f"search_results/{session}/{words}/{page.number}"
        case "item":
            path = f"item_page/{session}/{asin}/{words}/{page.number}/{json.dumps(options)}"
        case "sub":
            path = f"item_sub_page/{session}/{asin}/{words}/{page.number}/{page.sub}/{options}"
        case _:
            path = f"done/{session}/{asin}/{options}"
    return f"{BASE_URL}/{path}"
