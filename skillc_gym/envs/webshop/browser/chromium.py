"""A Chromium of our own, with its driver: started, asked, watched, and ended whatever happens to this process."""

from __future__ import annotations

import contextlib
import json
import re
import weakref
from collections.abc import Callable
from threading import RLock
from typing import Any, TypeVar

from skillc_gym.envs.webshop.browser.launch import BrowserSettings, connect, end, launch
from skillc_gym.errors import EngineError

Result = TypeVar("Result")

_SHELL = "chrome-headless-shell"
_ON_ITS_WAY = re.compile(
    "aborted by navigation|navigated or closed|unloaded|detached|no such execution|execution context|"
    "context was destroyed|promise was collected",
    re.IGNORECASE,
)
"""What a driver complains of while a page is on its way to another one."""


class BrowserLostError(EngineError):
    """The browser or its driver died, or answers no longer; a new one continues from the same address."""


class PageMovedError(BrowserLostError):
    """The page was left while a script ran on it; the next one can be asked."""


class Browser:
    """A browser with any number of tabs, used by one thread at a time.

    MissingDataError if there is no browser or no driver, EngineError if they do not start.
    """

    def __init__(self, settings: BrowserSettings) -> None:
        self.settings = settings
        self.lock = RLock()
        self.generation = 0
        self._first = self._current = ""
        self._start()

    def restart(self, generation: int) -> None:
        """Starts another browser and driver, unless another user has done so since the given `generation`."""
        with self.lock:
            if self.generation == generation:
                self.close()
                self.generation += 1
                self._start()

    def close(self) -> None:
        """Ends the browser, its driver and their files; may be called twice."""
        self._end()

    def tab(self) -> str:
        """Opens a tab and returns its handle."""
        with self.lock:
            handle = self._asked(self._new_tab)
            metrics = {"width": self.settings.width, "height": self.settings.height}
            if not self.settings.window:
                self.command(handle, "Emulation.setDeviceMetricsOverride", deviceScaleFactor=1, mobile=False, **metrics)
            return handle

    def close_tab(self, handle: str) -> None:
        """Closes a tab; an empty one is opened before the last, with which Chromium would end."""
        with self.lock, contextlib.suppress(BrowserLostError):
            if self._asked(lambda: self.driver.window_handles) == [handle]:
                self._first = self._asked(self._another_tab)
            self._in(handle, self.driver.close)
            self._current = ""

    def go(self, handle: str, url: str) -> str:
        """Goes to an address, in a tab; returns what went wrong, if anything did, once the page begins to come."""
        return str(self.command(handle, "Page.navigate", url=url).get("errorText", ""))

    def script(self, handle: str, script: str, *arguments: Any) -> Any:
        """Asks a page by the body of a function, which finds what JSON can hold of the arguments in ``arguments``.

        Raises:
            PageMovedError: The page was left in the meantime.
            EngineError: The script failed.
        """
        # One command of DevTools, where the driver's own way to run scripts needs three; and one text, where driver and
        # client would go through every value on the way.
        call = f"(function () {{{script}\n}}).apply(null, {json.dumps(arguments)})"
        expression = f"(async () => JSON.stringify(await {call}))()"
        found = self.command(handle, "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if failure := found.get("exceptionDetails"):
            what = failure.get("exception", {}).get("description", failure.get("text"))
            raise EngineError(f"A script failed on a page of the site: {what}")
        return json.loads(found["result"].get("value", "null"))

    def command(self, handle: str, name: str, **parameters: Any) -> Any:
        """Gives the browser a command of Chrome's DevTools protocol, in a tab."""
        body = {"cmd": name, "params": parameters}
        return self._in(handle, lambda: self.driver.execute("executeCdpCommand", body)["value"])

    def _in(self, handle: str, ask: Callable[[], Result]) -> Result:
        with self.lock:
            if self._current != handle:
                self._asked(lambda: self.driver.switch_to.window(handle))
                self._current = handle
            return self._asked(ask)

    def _asked(self, ask: Callable[[], Result]) -> Result:
        """Asks the driver; what only a new browser can mend becomes one kind of error."""
        from selenium.common.exceptions import WebDriverException
        from urllib3.exceptions import HTTPError

        try:
            return ask()
        except WebDriverException as error:
            if _ON_ITS_WAY.search(str(error.msg)):
                raise PageMovedError(f"The page was left: {error.msg}") from error
            raise BrowserLostError(f"The browser is gone: {error.msg}") from error
        except (HTTPError, OSError) as error:
            raise BrowserLostError(f"The browser's driver does not answer: {error}") from error

    def _new_tab(self) -> str:
        if not self._draws:
            return self._undrawn_tab()
        handle, self._first = self._first, ""
        return handle or self._another_tab()

    def _another_tab(self) -> str:
        self.driver.switch_to.new_window("tab")
        self._current = str(self.driver.current_window_handle)
        return self._current

    def _undrawn_tab(self) -> str:
        """Opens a tab whose frames are drawn when they are asked for, that is never."""
        self.driver.switch_to.window(self._first)
        asked = {"url": "about:blank", "width": self.settings.width, "height": self.settings.height}
        body = {"cmd": "Target.createTarget", "params": {**asked, "enableBeginFrameControl": True}}
        self._current = str(self.driver.execute("executeCdpCommand", body)["value"]["targetId"])
        self.driver.switch_to.window(self._current)
        return self._current

    def _start(self) -> None:
        browser, driver = self.settings.programs()
        self._processes = launch(driver)
        self._end = weakref.finalize(self, end, self._processes)
        try:
            self.driver = connect(self._processes, self.settings, browser)
        except BaseException:
            self._end()
            raise
        self._first = self._current = self._asked(lambda: self.driver.current_window_handle)
        self._draws = self.settings.pictures or self.driver.capabilities["browserName"] != _SHELL
