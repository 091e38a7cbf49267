"""Where pages come from, a site in this process or elsewhere, and how they come into a tab: loaded, or exchanged."""

from __future__ import annotations

import itertools
import json
import os
import threading
from collections.abc import Hashable, Mapping
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import parse_qsl, urlencode, urlsplit
from urllib.request import ProxyHandler, Request, build_opener
from weakref import WeakValueDictionary, finalize

import numpy as np

from skillc_gym.envs.webshop.browser.parsed_page import ParsedPage
from skillc_gym.envs.webshop.browser.tabs import NoSuchPageError, SiteLostError, Tab
from skillc_gym.envs.webshop.env import WebShopEnv
from skillc_gym.envs.webshop.shop.nodes import BUY
from skillc_gym.envs.webshop.shop.pages import Page, is_receipt
from skillc_gym.envs.webshop.site.front import ShopFront, search_action, shop_page
from skillc_gym.errors import ConfigError

TRANSPORTS = ("served", "swap")
_SECONDS = 30


class LocalSite:
    """A site in a thread of this process; it is started when it is first needed."""

    host: str | None = None
    """The machine that has to be looked up for it: none."""

    def __init__(self, front: ShopFront) -> None:
        self.front = front
        self._lock = threading.Lock()
        self._running: Any = None
        self._owner = os.getpid()

    def episode(self, task: int) -> str:
        """Opens an episode; returns its address."""
        site = self._started()
        return f"{site.url}/e/{site.site.tickets.issue(task)}/"

    def _started(self) -> Any:
        from skillc_gym.envs.webshop.site.access import LOOPBACK
        from skillc_gym.envs.webshop.site.app import Site
        from skillc_gym.envs.webshop.site.server import ThreadedSite

        with self._lock:
            # A process that was forked has the object, but not the thread.
            if self._running is None or not self._running.running or self._owner != os.getpid():
                self._owner = os.getpid()
                self._running = ThreadedSite(Site(self.front, hosts=LOOPBACK))
                finalize(self, self._running.close)
            return self._running


_sites: WeakValueDictionary[Hashable, LocalSite] = WeakValueDictionary()
_sites_lock = threading.Lock()


def local_site(core: WebShopEnv) -> LocalSite:
    """Returns the site that the environments of this process share which show the same shop."""
    key = (core.catalog, core.goals, core.tagger, core.fixes, core.show_attributes, core.escape_markup)
    with _sites_lock:
        site = _sites.get(key)
        if site is None:
            site = _sites[key] = LocalSite(ShopFront(core))
        return site


class RemoteSite:
    """A site that runs elsewhere, as ``skillc serve-webshop`` does; ``front`` is the same shop in this process.

    ``url`` has its ``?token=...`` where it has one. ConfigError if it is no address or shows another shop,
    SiteLostError if the site does not answer.
    """

    def __init__(self, url: str, front: ShopFront) -> None:
        try:
            parts, self._port = urlsplit(url), urlsplit(url).port or 80
        except ValueError as error:
            raise ConfigError(f"url= is an address such as http://127.0.0.1:3000, got {url!r}.") from error
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"url= is an address such as http://127.0.0.1:3000, got {url!r}.")
        self.front, self.host = front, parts.hostname
        self._token = dict(parse_qsl(parts.query)).get("token", "")
        self._url = f"{parts.scheme}://{parts.netloc}"
        self._compare(self._asked("/about.json", None))

    def episode(self, task: int) -> str:
        """Opens an episode; returns its address."""
        return f"{self._url}/e/{self._asked('/episodes', {'task': task})['ticket']}/"

    def _compare(self, about: Mapping[str, Any]) -> None:
        ours, theirs, goals = self.front.identity, about.get("shop", {}), self.front.goals.range
        names = [name for name in ours if theirs.get(name) != ours[name]]
        differing = [f"{name} ({theirs.get(name)!r} there, {ours[name]!r} here)" for name in names]
        if differing:
            raise ConfigError(
                f"The site {self._url} shows another shop: {'; '.join(differing)}. Give both the same data and options."
            )
        first, behind = about.get("goals", (goals.start, goals.stop))
        if goals.start < first or goals.stop > behind:
            raise ConfigError(
                f"The site {self._url} has the goals {first} to {behind - 1} alone, and {goals.start} to "
                f"{goals.stop - 1} are played; start it with --split all."
            )

    def _asked(self, path: str, sent: Any) -> dict[str, Any]:
        body = None if sent is None else json.dumps(sent).encode()
        headers = {"content-type": "application/json", "authorization": f"Bearer {self._token}"}
        request = Request(self._url + path, body, headers)
        try:
            # Never over a proxy: a site is on this machine, or in its network.
            with build_opener(ProxyHandler({})).open(request, timeout=_SECONDS) as answer:
                found = dict(json.load(answer))
        except HTTPError as error:
            remedy = "give its token: url='.../?token=...'" if error.code == 401 else "is that the shop?"
            raise ConfigError(f"{self._url}{path} answers {error.code} {error.reason}; {remedy}") from error
        except (URLError, OSError, ValueError, TypeError, HTTPException) as error:
            raise SiteLostError(
                f"The site {self._url} does not answer ({error}). Start it with: skillc serve-webshop --port "
                f"{self._port}"
            ) from error
        return found


ShopSite = LocalSite | RemoteSite


class Served:
    """The site's own pages over HTTP, with a mouse and a keyboard; ``episode`` is an episode's address on the site."""

    def __init__(self, episode: str) -> None:
        self._episode = episode

    def open(self, tab: Tab, address: str) -> ParsedPage:
        """Loads a page; a receipt is that of a purchase, which is made here where it has not been."""
        if not is_receipt(address):
            return tab.go(self._episode + address)
        item = tab.go(f"{self._episode}item?{address.partition('?')[2]}")
        bought = self.click(tab, item, item.control(BUY.label) or 0)
        assert bought is not None
        return bought

    def click(self, tab: Tab, parsed: ParsedPage, number: int) -> ParsedPage | None:
        """Clicks with the mouse on a control, by its number, and waits for the next page; None if it cannot."""
        point = tab.call("point", number)
        if point is None:
            return None
        tab.press(point)
        return tab.wait(parsed.state)

    def search(self, tab: Tab, parsed: ParsedPage, words: str) -> ParsedPage | None:
        """Writes the words into the search field and clicks on its button; None where the search is refused."""
        tab.call("write")
        tab.write(words.encode("utf-8", "replace").decode())
        point = tab.call("typed", words.encode("utf-8", "replace").decode())
        if point is None or not words.isprintable():
            return self._by_address(tab, parsed, words)
        tab.press(point)
        found, wanted = tab.wait(parsed.state), results_address("", words)
        return found if found.address == wanted or found.address.startswith(f"{wanted}&") else None

    def _by_address(self, tab: Tab, parsed: ParsedPage, words: str) -> ParsedPage | None:
        """Goes to the results of words that no keyboard has: control characters, halves of surrogate pairs."""
        try:
            return self.open(tab, results_address(parsed.address, words))
        except NoSuchPageError:
            self.open(tab, parsed.address)
            return None


class Swapped:
    """Pages drawn in this process and exchanged within the one that the browser has loaded."""

    def __init__(self, episode: str, front: ShopFront, task: int, generator: np.random.Generator) -> None:
        self._episode, self._front, self._task, self._generator = episode, front, task, generator
        self._states = itertools.count(1)

    def open(self, tab: Tab, address: str) -> ParsedPage:
        """Exchanges the page, or loads one where there is none yet."""
        page = self._front.page_at(address)
        if page is None:
            raise NoSuchPageError(f"There is no page {address!r}.")
        bought = page.kind == "done"  # which the site does not know: nothing was bought from it
        start = self._episode + ("home" if bought else address)
        if tab.needs_reload:
            loaded = tab.reload(start)
        # A tab that was just opened may not even have a root element yet.
        elif not tab.ask("return document.documentElement?.dataset.state ? location.origin : ''"):
            loaded = tab.go(start)
        else:
            return self._exchange(tab, page)
        return self._exchange(tab, page) if bought else loaded

    def click(self, tab: Tab, parsed: ParsedPage, number: int) -> ParsedPage | None:
        """Does what a click on a control would."""
        control = parsed.controls[number]
        page = self._front.page_at(parsed.address)
        assert page is not None
        if control.kind == "link":
            target = self._front.page_at(control.value or "")
        else:
            sent = ("click" if control.kind == "button" else control.group, control.value or "")
            target = self._front.follow(self._task, page, [sent], self._generator)
        return None if target is None else self._exchange(tab, target)

    def search(self, tab: Tab, parsed: ParsedPage, words: str) -> ParsedPage | None:
        """Does what a search would."""
        page = self._front.page_at(parsed.address)
        assert page is not None
        target = self._front.act(self._task, page, search_action(words), self._generator)
        return None if target is None else self._exchange(tab, target)

    def _exchange(self, tab: Tab, page: Page) -> ParsedPage:
        view = self._front.view(self._task, page)
        html = shop_page(view, state=next(self._states), searchable=self._front.searchable(page))
        return tab.exchange(html, self._episode + view.address)


Transport = Served | Swapped
"""How an episode's pages come into a tab: `open`, `click` and `search`."""


def results_address(address: str, words: str) -> str:
    """Returns the address of the results of a search from the page of another address."""
    pairs = [("q", words), ("page", "1")]
    pairs += [pair for pair in parse_qsl(address.partition("?")[2], errors="surrogatepass") if pair[0] == "seen"]
    return f"results?{urlencode(pairs, errors='surrogatepass')}"
