"""Tabs, and the browsers that several environments share."""

from __future__ import annotations

import base64
import contextlib
import io
import threading
import time
from collections import Counter
from functools import cache
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from skillc_gym.envs.webshop.browser.chromium import Browser, BrowserLostError, PageMovedError
from skillc_gym.envs.webshop.browser.launch import BrowserSettings
from skillc_gym.envs.webshop.browser.parsed_page import ParsedPage
from skillc_gym.errors import EngineError, needs_extra
from skillc_gym.pages import resource
from skillc_gym.values import require_whole

_MOST_PAGES = 100
"""Pages after which a tab lets go of what it keeps of earlier ones: the browser itself waits until memory is short."""


class SiteLostError(EngineError):
    """The site does not answer."""


class NoSuchPageError(EngineError):
    """The site has no such page: it does not know the episode, or the address is of no page."""


class BrowserPool:
    """A number of browsers for any number of environments, each of which has a tab in one of them.

    A browser is started when it is first needed, and ended with the last of its tabs.
    """

    def __init__(self, size: int, settings: BrowserSettings) -> None:
        self.settings = settings
        self.size = require_whole("browsers=", size, 1)
        self._browsers: list[Browser | None] = [None] * self.size
        self._users: Counter[int] = Counter()
        self._lock = threading.RLock()  # the collector may release a tab while this thread starts a browser

    def acquire(self) -> Browser:
        """Returns the browser with the fewest users, one more from now on; `release` takes it back."""
        with self._lock:
            place = min(range(len(self._browsers)), key=lambda place: (self._users[place], place))
            browser = self._browsers[place]
            if browser is None:
                browser = self._browsers[place] = Browser(self.settings)
            self._users[place] += 1
            return browser

    def has_other_users(self, browser: Browser) -> bool:
        """Tells whether a browser has other users."""
        with self._lock:
            return self._users[self._browsers.index(browser)] > 1

    def release(self, browser: Browser) -> None:
        """Takes a browser back."""
        with self._lock:
            place = self._browsers.index(browser)
            self._users[place] -= 1
            if not self._users[place]:
                self._browsers[place] = None
                browser.close()


_pools: WeakValueDictionary[tuple[int, BrowserSettings], BrowserPool] = WeakValueDictionary()
_pools_lock = threading.Lock()


def shared_pool(size: int, settings: BrowserSettings) -> BrowserPool:
    """Returns the pool of that size and these settings that the environments of this process share."""
    with _pools_lock:
        pool = _pools.get((size, settings))
        if pool is None:
            pool = _pools[size, settings] = BrowserPool(size, settings)
        return pool


@cache
def page_script(function: str) -> str:
    """Returns a script that calls a function of ``page.js`` with the arguments it is given."""
    return f"{resource(__package__, 'page.js')}\nreturn {function}(...arguments);"


class Tab:
    """A tab in one of a pool's browsers, opened when it is first needed; ``html``: whether it reads that of pages."""

    def __init__(self, pool: BrowserPool, *, html: bool = False) -> None:
        self._pool, self._html = pool, html
        self._browser: Browser | None = None
        self._handle = ""
        self._generation = self._pages = 0

    def restart(self) -> None:
        """Gives up the tab and has its browser replaced, unless another user has done so since it was opened."""
        opened, self._handle = bool(self._handle), ""
        if self._browser is not None:
            self._browser.restart(self._generation if opened else self._browser.generation)

    def release(self) -> None:
        """Closes the tab, and ends its browser if no other tab is open in it; used again, it opens another one."""
        browser, self._browser = self._browser, None
        handle, self._handle = self._handle, ""
        if browser is None:
            return
        if handle and self._pool.has_other_users(browser) and self._generation == browser.generation:
            browser.close_tab(handle)
        self._pool.release(browser)

    def go(self, url: str) -> ParsedPage:
        """Goes to an address and reads the page; every now and then, what is left of earlier pages is collected."""
        browser = self._opened()
        if problem := browser.go(self._handle, url):
            raise SiteLostError(f"{url.partition('/e/')[0]} does not answer: {problem}")
        parsed = self.wait(0)
        if self.needs_reload:
            self._pages = 0
            self._command("HeapProfiler.collectGarbage")
        return parsed

    def wait(self, state: int) -> ParsedPage:
        """Reads the page as soon as it is another one than that of the given state number.

        SiteLostError, NoSuchPageError or, where no other page comes in time, BrowserLostError say what went wrong.
        """
        seconds = self._pool.settings.timeout
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            with contextlib.suppress(PageMovedError):
                self._pages += 1
                return self._read("readNext", state)
        raise BrowserLostError(f"The browser shows no new page after {seconds:g} seconds.")

    def exchange(self, html: str, address: str) -> ParsedPage:
        """Exchanges the page for another one without loading it, and reads that."""
        self._pages += 1
        return self._read("exchange", html, address)

    @property
    def needs_reload(self) -> bool:
        """Whether there were so many pages that the next one had better be loaded, by `reload` or `go`."""
        return self._pages >= _MOST_PAGES

    def reload(self, url: str) -> ParsedPage:
        """Goes to an address by way of an empty page: what was exchanged before would stay in memory otherwise."""
        browser = self._opened()
        browser.go(self._handle, "about:blank")
        return self.go(url)

    def ask(self, script: str, *arguments: Any) -> Any:
        """Asks the page by a script."""
        browser = self._opened()
        return browser.script(self._handle, script, *arguments)

    def call(self, function: str, *arguments: Any) -> Any:
        """Calls a function of ``page.js`` on the page."""
        return self.ask(page_script(function), *arguments)

    def press(self, point: tuple[float, float]) -> None:
        """Clicks with the mouse."""
        x, y = point
        for kind in ("mousePressed", "mouseReleased"):
            self._command("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def write(self, text: str) -> None:
        """Writes where the focus is."""
        self._command("Input.insertText", text=text)

    def screenshot(self) -> NDArray[np.uint8]:
        """Returns what is to be seen: uint8 of shape (height, width, 3)."""
        with needs_extra("Pillow", "browser"):
            from PIL import Image
        self.call("loaded")
        data = self._command("Page.captureScreenshot", format="png", optimizeForSpeed=True)["data"]
        return np.asarray(Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB"))

    def _read(self, function: str, *arguments: Any) -> ParsedPage:
        found = self.call(function, *arguments, self._html)
        if "lost" in found:
            raise SiteLostError("The site does not answer any longer.")
        if "missing" in found:
            raise NoSuchPageError(f"The site has no such page: {found['missing']}")
        return ParsedPage.of(found)

    def _command(self, name: str, **parameters: Any) -> Any:
        browser = self._opened()
        return browser.command(self._handle, name, **parameters)

    def _opened(self) -> Browser:
        """The browser, with the tab open in it."""
        if self._browser is None:
            self._browser = self._pool.acquire()
        if not self._handle:
            self._generation, self._pages = self._browser.generation, 0
            self._handle = self._browser.tab()
        if self._generation != self._browser.generation:
            raise BrowserLostError("The browser of this tab was replaced by another one.")
        return self._browser
