"""The shop: which page a click or a search leads to, with the pages of a catalogue remembered for all customers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from skillc_gym.envs.webshop.catalog.catalog import Catalog, EscapedCatalog
from skillc_gym.envs.webshop.search.analyzer import analyze
from skillc_gym.envs.webshop.search.searcher import MAX_TERMS
from skillc_gym.envs.webshop.shop import nodes, pages
from skillc_gym.envs.webshop.shop.compat import Fixes
from skillc_gym.envs.webshop.shop.nodes import NAVIGATION, PAGE_SIZE, SEARCH, Node
from skillc_gym.envs.webshop.shop.pages import HOME, MAX_ACTION, SUB_PAGES, Address, Page

if TYPE_CHECKING:
    from skillc_gym.envs.webshop.catalog.product import Listing, Product

_RANDOM = 50
_ITEMS, _PAGES, _QUERIES, _LONGEST = 1 << 10, 1 << 9, 1 << 10, 512
_LARGE, _FEWER = 1 << 15, 4
"""In shops of more products, one page in so many is remembered: what was seen is seldom seen again."""
_SUBS = {sub.lower(): sub for sub in SUB_PAGES}
_BACK, _BUY, _NEXT, _PREV, _SEARCH = (
    button.label for button in (nodes.BACK, nodes.BUY, nodes.NEXT, nodes.PREV, SEARCH)
)
_ADDRESSES = (("search_results", "results"), ("item_page", "item"), ("item_sub_page", "sub"), ("done", "done"))


@dataclass(frozen=True, slots=True)
class Body:
    """A page without the instruction: its text, what can be clicked (``actions``: but the search button).

    ``targets`` are the products by their links' texts, or the groups of an option's value.
    """

    text: str
    clickables: tuple[str, ...]
    actions: tuple[str, ...]
    targets: Mapping[str, tuple[int | str, ...]]
    buttons: frozenset[str]


class Store:
    """The pages of a catalogue, with the fixes in force; one for all environments of a process that share it."""

    def __init__(self, catalog: Catalog | EscapedCatalog, fixes: Fixes, *, attributes: bool = False) -> None:
        self.catalog, self.fixes, self.attributes = catalog, fixes, attributes
        fewer = _FEWER if len(catalog) > _LARGE else 1
        self._searched = lru_cache(_QUERIES // fewer)(lambda words: tuple(catalog.search(words)))
        self._results = lru_cache(_PAGES // fewer)(self._results_body)
        self._item = lru_cache(_ITEMS // fewer)(self._item_body)
        self._sub = lru_cache(_PAGES // fewer)(
            lambda product, sub: _body(self.nodes(Page("sub", product=product, sub=sub)))
        )

    def act(self, page: Page, action: str, generator: np.random.Generator) -> Page | None:
        """Carries out an action; ``generator`` draws upstream's random results. None when it cannot be carried out."""
        brackets = self.fixes.bracketed_values
        read = pages.read_action(action, brackets=brackets, is_there=lambda label: label in self.body(page).targets)
        if read is None:
            return None
        name, argument = read
        act = self._click if name == "click" else self._to_results
        return act(page, argument, generator)

    def body(self, page: Page) -> Body:
        """Returns the page without the instruction, remembered."""
        match page.kind:
            case "results":
                return self._results(page.hits, page.number)
            case "item":
                return self._item(page.product)
            case "sub":
                return self._sub(page.product, page.sub)
            case "index":
                return _INDEX
            case _:
                return _body(self.nodes(page))

    def nodes(self, page: Page) -> list[Node]:
        """Returns the texts of the page, without the instruction; not remembered."""
        match page.kind:
            case "results":
                return nodes.results_nodes(page.number, len(page.hits), self.listings(page))
            case "item":
                return nodes.item_nodes(self.catalog.product(page.product), attributes=self.attributes)
            case "sub":
                return nodes.sub_nodes(self.catalog.product(page.product), page.sub)
            case "index":
                return [SEARCH]
            case _:
                return nodes.done_nodes(page, self.asin(page))

    def listings(self, page: Page) -> list[Listing]:
        """Returns what a page of results shows of its products."""
        start = (page.number - 1) * PAGE_SIZE
        return [self.catalog.listing(index) for index in page.hits[start : start + PAGE_SIZE] if start >= 0]

    def product(self, page: Page) -> Product | None:
        """Returns the product looked at, None where there is none."""
        return self.catalog.product(page.product) if page.product >= 0 else None

    def asin(self, page: Page) -> str:
        """Returns the asin of the product looked at, "" for none."""
        return self.catalog.product(page.product).asin if page.product >= 0 else ""

    def url(self, page: Page, session: str) -> str:
        """Returns upstream's address of the page."""
        return pages.url_of(page, session, self.asin(page))

    def address(self, page: Page) -> str:
        """Returns the page's own address; `page_at` leads back."""
        hits = page.hits if self._command(page.words) == "<r>" else ()
        return pages.address_of(page, self.catalog.asin, hits=hits)

    def link(self, page: Page, listing: Listing, generator: np.random.Generator) -> str | None:
        """Returns the address that a click on a product's link leads to, None where it leads nowhere."""
        label, body = listing.asin.lower(), self.body(page)
        if self.fixes.any_case_asins and len(body.targets.get(label, ())) > 1 and label not in body.buttons:
            return self.address(page.item(listing.index))  # a click would open the first that was not looked at
        target = self._click(page, label, generator)
        return None if target is None else self.address(target)

    def page_at(self, address: str) -> Page | None:
        """Returns the page of an address, with the score of a purchase left open; None if there is no such page."""
        found = pages.read_address(address)
        if found is None or found.kind == "index":
            return None if found is None else HOME
        named = [self.catalog.index_of(asin) for asin in (*found.visited, *found.hits)]
        product = self.catalog.index_of(found.asin) if found.asin else -1
        if product is None or None in named or (found.number < 1 and self.fixes.page_by_state):
            return None
        indices = [index for index in named if index is not None]
        visited, hits = frozenset(indices[: len(found.visited)]), tuple(indices[len(found.visited) :])
        page = self._found_again(found, visited, hits)
        if page is None or not self._offers(product, found.options):
            return None
        return page._replace(kind=found.kind, product=product, sub=found.sub, options=found.options)

    def clicked(self, page: Page, url: str) -> Callable[[Node], bool]:
        """Returns what tells whether an option or a link is shown as clicked; upstream judges options by the URL."""
        if page.kind == "results":
            seen = {listing.asin for listing in self.listings(page) if listing.index in page.visited}
            return lambda node: node.text in seen
        if self.fixes.real_selections:
            return lambda node: (node.group, node.text) in page.options
        return lambda node: f'"{node.text}"' in url

    def _found_again(self, found: Address, visited: frozenset[int], hits: tuple[int, ...]) -> Page | None:
        page = Page("results", visited=visited)
        if self._too_long(found.words):
            return None
        if self._command(found.words) == "<r>":
            return Page("results", found.words, found.number, hits, visited=visited)
        # Nothing is drawn for these words, so any generator will do.
        searched = self._to_results(page, found.words, np.random.default_rng(0))
        return None if searched is None else searched.results(found.number)

    def _offers(self, product: int, options: tuple[tuple[str, str], ...]) -> bool:
        offered = self.catalog.product(product).options if product >= 0 else {}
        groups = [group for group, _ in options]
        return len(groups) == len(set(groups)) and all(value in offered.get(group, ()) for group, value in options)

    def _too_long(self, words: str) -> bool:
        """Whether no action can search for these words; in lower case they may be longer than they were written."""
        return self.fixes.long_queries and len(f"search[{words}]") > MAX_ACTION

    def _command(self, words: str) -> str:
        """Upstream's hidden command that a query is, which no index answers ("<r>": random results); "" for none."""
        first = words.split(" ", 1)[0]
        return first if first in ("<r>", "<a>", "<c>", "<q>") and not self.fixes.plain_queries else ""

    def _to_results(self, page: Page, words: str, generator: np.random.Generator) -> Page | None:
        cut = not self._command(words) and len(words) > MAX_TERMS and len(set(analyze(words))) > MAX_TERMS
        if self._too_long(words) or (cut and not self.fixes.long_queries):
            return None
        hits = self._find(words, generator)
        return None if hits is None else Page("results", words, 1, hits, visited=page.visited, cut=cut)

    def _find(self, words: str, generator: np.random.Generator) -> tuple[int, ...] | None:
        if command := self._command(words):
            return self._upstream_find(command, words, generator)
        return self._searched(words) if len(words) <= _LONGEST else tuple(self.catalog.search(words))

    def _upstream_find(self, first: str, words: str, generator: np.random.Generator) -> tuple[int, ...] | None:
        """The hidden commands of upstream's search; None where it raises."""
        if first == "<r>":
            count = len(self.catalog)
            return None if count < _RANDOM else tuple(generator.choice(count, _RANDOM, replace=False).tolist())
        _, *parts = words.split(" ")
        products = map(self.catalog.product, range(len(self.catalog)))
        if first == "<q>":
            return tuple(product.index for product in products if product.query == " ".join(parts).strip())
        if first == "<c>" and parts:
            return tuple(product.index for product in products if product.category == parts[0].strip())
        return None

    def _click(self, page: Page, label: str, generator: np.random.Generator) -> Page | None:
        body = self.body(page)
        if label == _SEARCH or label not in body.clickables:
            return None
        if self.fixes.any_case_asins and page.kind == "results" and label in body.targets and label not in body.buttons:
            return self._open(page, label, body.targets[label])
        if label == _BUY:
            return page._replace(kind="done") if page.product >= 0 else None
        if label == _BACK:
            return HOME
        if label in NAVIGATION:
            return self._navigate(page, label, generator)
        return self._open(page, label, body.targets[label])

    def _navigate(self, page: Page, label: str, generator: np.random.Generator) -> Page | None:
        kind = self._kind(page)
        if label in (_PREV, _NEXT) and kind == "results":
            return self._turn(page, page.number + (1 if label == _NEXT else -1), generator)
        if label == _PREV and kind == "item":
            return self._turn(page, page.number, generator)
        if label == _PREV and kind == "sub":
            return page._replace(kind="item", sub="")
        if label in _SUBS:
            return page._replace(kind="sub", sub=_SUBS[label]) if page.product >= 0 else None
        targets = self.body(page).targets
        return self._open(page, label, targets[label]) if label in targets else None

    def _turn(self, page: Page, number: int, generator: np.random.Generator) -> Page | None:
        if self._command(page.words) == "<r>":  # upstream draws again at every turn
            hits = self._find(page.words, generator)
            return None if hits is None else page.results(number)._replace(hits=hits)
        return page.results(number)

    def _open(self, page: Page, label: str, target: tuple[int | str, ...]) -> Page | None:
        if page.kind == "results":
            if not self.fixes.any_case_asins:
                product = self.catalog.index_of(label.upper())
                return None if product is None else page.item(product)
            products = [int(index) for index in target]
            return page.item(next((index for index in products if index not in page.visited), products[-1]))
        groups = [str(group) for group in target]
        if not self.fixes.every_group:
            return page.chosen(groups[-1], label)
        chosen = dict(page.options)
        return page.chosen(next((group for group in groups if chosen.get(group) != label), groups[0]), label)

    def _kind(self, page: Page) -> str:
        if self.fixes.page_by_state:
            return page.kind
        url = self.url(page, "")
        return next((kind for address, kind in _ADDRESSES if address in url), "index")

    def _results_body(self, hits: tuple[int, ...], number: int) -> Body:
        listings = self.listings(Page("results", number=number, hits=hits))
        targets: dict[str, tuple[int | str, ...]] = {}
        for listing in listings:
            label = listing.asin.lower()
            targets[label] = (*targets.get(label, ()), listing.index)
        return _body(nodes.results_nodes(number, len(hits), listings), targets)

    def _item_body(self, index: int) -> Body:
        groups: dict[str, tuple[str, ...]] = {}
        for group, values in self.catalog.product(index).options.items():
            groups |= {value: (*groups.get(value, ()), group) for value in values}
        return _body(self.nodes(Page("item", product=index)), groups)


def _body(found: list[Node], targets: Mapping[str, tuple[int | str, ...]] | None = None) -> Body:
    buttons = [node.label for node in found if node.kind == "button"]
    clickables = tuple(dict.fromkeys([*buttons, *(targets or ())]))
    actions = tuple(f"click[{label}]" for label in clickables if label not in ("", _SEARCH))
    return Body(nodes.page_text(found), clickables, actions, targets or {}, frozenset(buttons))


_INDEX = _body([SEARCH])


@lru_cache(16)
def open_store(catalog: Catalog, fixes: Fixes, attributes: bool, escaped: bool = False) -> Store:
    """Returns the pages of a catalogue; ``escaped``: products' text cannot pass for marks of a page."""
    return Store(EscapedCatalog(catalog) if escaped else catalog, fixes, attributes=attributes)
