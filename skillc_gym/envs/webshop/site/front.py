"""The front of the shop: what stands on the page of a task and an address, and where an action leads from there.

All of it is asked of the native environment, whose moment is put to the page: text, HTML and pixels have one
source. Nothing is remembered between two calls.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from hashlib import sha256
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from skillc_gym.envs.base import Snapshot
from skillc_gym.envs.webshop.env import ShopState, WebShopEnv
from skillc_gym.envs.webshop.goals.goals import NO_LIMIT
from skillc_gym.envs.webshop.shop.nodes import BUY, named, price_for_people
from skillc_gym.envs.webshop.shop.pages import Page, parse_action
from skillc_gym.envs.webshop.shop.store import open_store
from skillc_gym.envs.webshop.site.access import AGENT, PERSON, UPSTREAM
from skillc_gym.pages import page as filled_in

Pairs = list[tuple[str, str]]

_UNTYPED = re.compile(r"[\[\]\r\n]")


class Offer(NamedTuple):
    """A product as a receipt names it: its title, id, price and chosen options."""

    title: str
    asin: str
    price: str
    options: Sequence[str]


class Receipt(NamedTuple):
    """What a purchase was worth, and what would have fitted.

    ``shares`` says how well kind of product, attributes, options (if any were asked for) and price fit, in [0, 1];
    ``asked`` what was asked for, in words, and whether the purchase has it; ``meant`` is the product of the task, None
    where that would have scored no better.
    """

    shares: Mapping[str, float]
    asked: Sequence[tuple[str, bool]]
    bought: Offer
    meant: Offer | None


@dataclass(frozen=True)
class PageView:
    """What a visitor gets to see at an address: the page as HTML without its frame, and for a person the receipt."""

    page: Page
    address: str
    fragment: str
    cut: bool
    receipt: Receipt | None = None


class ShopFront:
    """Shows the pages of an environment's shop, which nobody else may play in; safe to share between threads."""

    def __init__(self, core: WebShopEnv) -> None:
        self.core = core
        self.goals = core.goals
        self._store = open_store(core.catalog, core.fixes, core.show_attributes, core.escape_markup)
        self._lock = Lock()

    @cached_property
    def identity(self) -> dict[str, Any]:
        """What two sites must agree on to show the same pages and scores, whatever the task."""
        core = self.core
        return {
            **core.identify(()),
            "goals": core.goals.kind,
            "goals_sha256": core.goals.sha256,
            "attributes": core.show_attributes,
            "escape_markup": core.escape_markup,
        }

    def page_at(self, address: str) -> Page | None:
        """Returns the page of an address, None if there is no such page."""
        with self._lock:
            return self._store.page_at(address)

    def address(self, page: Page) -> str:
        """Returns the address of a page."""
        return self._store.address(page)

    def view(self, task: int, page: Page, *, person: bool = False) -> PageView:
        """Returns what is to be seen on a page of a task, by an agent or by a person."""
        with self._lock:
            cut = self._go(task, page)["query_cut"]
            receipt = self._receipt(task, page) if person and page.kind == "done" else None
            return PageView(page, self._store.address(page), self.core.fragment(person=person), cut, receipt)

    def act(self, task: int, page: Page, action: str, generator: np.random.Generator | None = None) -> Page | None:
        """Returns the page that an action leads to, None if it is not possible.

        Upstream's random results are drawn from an episode's generator, or by the task's number.
        """
        with self._lock:
            self._go(task, page)
            self.core.np_random = generator or np.random.default_rng(task)
            *_, info = self.core.step(action)
            page = self.core.snapshot().state.page
            return page._replace(reward=0.0) if info["action_valid"] else None

    def action(self, page: Page, sent: Pairs) -> str | None:
        """Returns the action that sending a form from a page is, None for none.

        Its names and values are ``search_query``, ``click`` with a button's label, or a group of options with a value.
        """
        chosen, named = self._chosen(page, sent), dict(sent)
        if chosen:
            return f"click[{chosen[1]}]"
        if named.get("search_query"):
            return search_action(named["search_query"]) if self.searchable(page) else None
        return f"click[{named['click']}]" if named.get("click") else None

    def follow(self, task: int, page: Page, sent: Pairs, generator: np.random.Generator | None = None) -> Page | None:
        """Returns the page that a form sent from a page leads to, None for nowhere else.

        The form is as for `action`, the generator as for `act`.
        """
        chosen = self._chosen(page, sent)
        # The label alone, by which agents choose, does not tell the group of a value that stands in several.
        if chosen and len([group for group, value in self._offered(page) if value == chosen[1]]) > 1:
            return page.chosen(*chosen)
        action = self.action(page, sent)
        return None if action is None else self.act(task, page, action, generator)

    def asin(self, page: Page) -> str:
        """Returns the id of the product looked at, as pages show it."""
        return self._store.asin(page)

    def state(self, task: int, page: Page) -> ShopState:
        """Returns the native environment's state on a page of a task."""
        with self._lock:
            self._go(task, page)
            state: ShopState = self.core.snapshot().state
            return state

    def searchable(self, page: Page) -> bool:
        """Tells whether one can search from a page: everywhere but after a purchase that ends the episode."""
        return page.kind != "done" or not self.core.fixes.purchase_ends

    def _receipt(self, task: int, page: Page) -> Receipt:
        goal, core = self.goals.goal(task), self.core
        got = core.rate(goal, page)
        shares = {name: float(share) for name, share in got.parts().items() if name.startswith("r_")}
        asked = [(one, core.rate(replace(goal, attributes=(one,)), page).r_att == 1) for one in goal.attributes]
        options = [one if isinstance(one, str) else ": ".join(one) for one in goal.options]
        alone = [core.rate(replace(goal, options=(one,)), page).r_option == 1 for one in goal.options]
        asked += zip(options, alone, strict=True)
        if goal.price_upper < NO_LIMIT:
            asked.append((f"at most ${goal.price_upper:,.2f}", got.r_price))
        bought = self._offer(page.product, [": ".join(pair) for pair in page.options])
        better = got.total < core.best_score(self.goals.task_id(task))
        meant = self._offer(int(self.goals.table.product[task]), options) if better else None
        return Receipt(shares, asked, bought, meant)

    def _offer(self, index: int, options: Sequence[str]) -> Offer:
        product = self.core.catalog.product(index)
        return Offer(product.title, product.asin, price_for_people(product.price_tag), options)

    def _chosen(self, page: Page, sent: Pairs) -> tuple[str, str] | None:
        # Browsers send line breaks in a way of their own.
        found = {(_lines(named(name)), _lines(value)) for name, value in sent}
        return next((pair for pair in self._offered(page) if (_lines(pair[0]), _lines(pair[1])) in found), None)

    def _offered(self, page: Page) -> list[tuple[str, str]]:
        product = self._store.product(page)
        if page.kind != "item" or product is None:
            return []
        return [(group, value) for group, values in product.options.items() for value in dict.fromkeys(values)]

    def _go(self, task: int, page: Page) -> dict[str, Any]:
        """Puts the environment to a page; a purchase is made again, so that it is scored."""
        where = page._replace(kind="item") if page.kind == "done" else page
        state = ShopState(where, None)
        _, info = self.core.restore(Snapshot(self.goals.task_id(task), state, None, "", True))
        if page.kind == "done":
            *_, info = self.core.step(f"click[{BUY.label}]")
        return info


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def search_action(words: str) -> str:
    """Returns the action that searches for words, with blanks for brackets and line breaks that no action can hold."""
    action = f"search[{words}]"
    return action if parse_action(action) == ("search", words.lower()) else f"search[{_UNTYPED.sub(' ', words)}]"


render = partial(filled_in, "skillc_gym.envs.webshop.site.templates")
"""Fills in one of the site's templates; every text is escaped."""


def shop_page(view: PageView, *, state: int, searchable: bool, audience: str = AGENT) -> str:
    """Writes a page of the shop for an audience; nothing stands around it for `UPSTREAM`.

    ``state`` is another number for every answer of the site, by which a browser's driver sees that it is a new page.
    """
    page = view.page
    words = page.words if page.kind in ("results", "item", "sub") else ""
    seen = {"words": words, "searchable": searchable and page.kind != "index", "person": audience == PERSON}
    facts = json.dumps({"query_cut": view.cut})
    template = "upstream.html" if audience == UPSTREAM else "shop.html"
    return render(template, view=view, kind=page.kind, state=state, facts=facts, **seen)


def picture(asin: str, category: str) -> str:
    """Draws a product as SVG of 160 by 160 units: the colours come from its id, the shape from its category."""
    digest = sha256(asin.encode("utf-8", "surrogatepass")).digest()
    hue, turn = digest[0] * 360 // 256, 20 + digest[1] % 50
    dots = [(digest[i] * 160 // 256, digest[i + 1] * 160 // 256, 6 + digest[i + 2] % 22) for i in range(2, 17, 3)]
    hues = {"hue": hue, "ink": f"hsl({(hue + turn) % 360},45%,38%)"}
    return render("picture.svg", category=category, mark=asin[-4:], dots=dots, **hues)
