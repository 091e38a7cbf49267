"""A Chromium of our own, with its driver: started, watched, and ended whatever happens to this process."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from threading import RLock
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from skillc_gym.errors import ConfigError, EngineError, MissingDataError, missing_extra

if TYPE_CHECKING:
    from selenium.webdriver import Remote

__all__ = ["Browser", "BrowserLostError", "BrowserSettings"]

Result = TypeVar("Result")

_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
_FLAGS = (
    "--no-sandbox" if hasattr(os, "geteuid") and os.geteuid() == 0 else "",
    "--remote-debugging-pipe",  # Chromium ends when its driver does
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--disable-breakpad",
    "--disable-renderer-backgrounding",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    # A step is a new page of the same site: what makes pages of many sites safe or quick to go back to only costs here.
    "--incognito",
    "--renderer-process-limit=1",
    "--disable-site-isolation-trials",
    "--disable-features=MediaRouter,OptimizationHints,Translate,InterestFeedContentSuggestions,PaintHolding,"
    "BackForwardCache,RenderDocument,SpareRendererForSitePerProcess,AutofillServerCommunication",
    "--disable-client-side-phishing-detection",
    "--disable-component-extensions-with-background-pages",
    "--allow-browser-signin=false",
    "--metrics-recording-only",
    "--no-pings",
    "--mute-audio",
    "--force-color-profile=srgb",
)
# Ends the driver's processes and removes their files as soon as the pipe to it is closed, be it by our death.
_WATCH = 'read -r _; kill -s KILL -- "-$1" 2>/dev/null; rm -rf -- "$2" 2>/dev/null || { sleep 1; rm -rf -- "$2"; }'
_ON_ITS_WAY = (
    "aborted by navigation",
    "unloaded",
    "net::ERR_",
    "detached",
    "no such execution",
    "context was destroyed",
)
"""What a driver complains of while a page is on its way to another one."""
_START_SECONDS = 120
_OFF = (
    "autofill.profile_enabled",
    "autofill.credit_card_enabled",
    "credentials_enable_service",
    "profile.password_manager_enabled",
    "safebrowsing.enabled",
    "search.suggest_enabled",
    "signin.allowed",
    "translate.enabled",
)
"""Preferences by which a browser would ask others about pages, forms and words."""
_STARTED = re.compile(rb"started successfully on port (\d+)")


class BrowserLostError(EngineError):
    """The browser or its driver died, or answers no longer; a new one goes on from the same address."""


@dataclass(frozen=True)
class BrowserSettings:
    """What a browser is started with.

    Attributes:
        browser: Chromium's program; found in PATH by default.
        driver: ChromeDriver's program; found in PATH by default.
        width: Width of the page, in pixels.
        height: Height of the page that is seen at once, in pixels.
        window: Whether to show a window.
        pictures: Whether to load the pictures on pages; in vain where nobody looks.
        timeout: Seconds after which an answer is given up.
        site: The name of a site elsewhere, which may be looked up.
    """

    browser: str | None = None
    driver: str | None = None
    width: int = 1024
    height: int = 1280
    window: bool = False
    pictures: bool = True
    timeout: float = 30.0
    site: str | None = None

    def programs(self) -> tuple[str, str]:
        """Returns the programs of browser and driver.

        Raises:
            MissingDataError: One of them is not there.
        """
        return _program("browser", self.browser, _BROWSERS), _program("driver", self.driver, ("chromedriver",))


def _program(kind: str, named: str | None, names: tuple[str, ...]) -> str:
    looked_for = (named,) if named else names
    found = next((path for path in map(shutil.which, looked_for) if path), None)
    if found is None:
        raise MissingDataError(
            f"No {kind} found: looked in PATH for {', '.join(looked_for)}. On Debian and Ubuntu: "
            f"apt-get install chromium chromium-driver; elsewhere name the program with {kind}=..."
        )
    return found


class _Processes(NamedTuple):
    """A driver with all that it started, the process that watches over them, and their folder."""

    driver: subprocess.Popen[bytes]
    watch: subprocess.Popen[bytes]
    folder: str
    owner: int


class Browser:
    """A browser with any number of tabs, used by one thread at a time.

    Args:
        settings: What it is started with.

    Raises:
        MissingDataError: There is no browser or no driver.
        MissingExtraError: Selenium is not installed.
        EngineError: They do not start.
    """

    def __init__(self, settings: BrowserSettings) -> None:
        self.settings = settings
        self.lock = RLock()
        self.generation = 0
        self._first = self._current = ""
        self._start()

    @property
    def process_group(self) -> int:
        """The process group of the driver and of all its browser's processes."""
        return self._processes.driver.pid

    def restart(self, generation: int) -> None:
        """Starts anew, unless somebody else has done so since.

        Args:
            generation: The `generation` in which the browser was lost.
        """
        with self.lock:
            if self.generation == generation:
                self.close()
                self.generation += 1
                self._start()

    def close(self) -> None:
        """Ends the browser, its driver and their files; may be called twice."""
        self._end()

    def tab(self) -> str:
        """Opens a tab and returns its handle; the first one is there from the start."""
        with self.lock:
            if self._first:
                handle, self._first = self._first, ""
            else:
                handle = self._asked(self._new_tab)
            self._current = handle
            metrics = {"width": self.settings.width, "height": self.settings.height}
            if not self.settings.window:
                self.command(handle, "Emulation.setDeviceMetricsOverride", deviceScaleFactor=1, mobile=False, **metrics)
            return handle

    def close_tab(self, handle: str) -> None:
        """Closes a tab."""
        with self.lock, contextlib.suppress(BrowserLostError):
            self._in(handle, self.driver.close)
            self._current = ""

    def go(self, handle: str, url: str) -> None:
        """Goes to an address, in a tab."""
        self._in(handle, lambda: self.driver.get(url))

    def script(self, handle: str, script: str, *arguments: Any) -> Any:
        """Asks a page by a script, in a tab."""
        return self._in(handle, lambda: self.driver.execute_script(script, *arguments))

    def command(self, handle: str, name: str, **parameters: Any) -> Any:
        """Gives the browser a command of Chrome's DevTools protocol, in a tab."""
        body = {"cmd": name, "params": parameters}
        return self._in(handle, lambda: self.driver.execute("executeCdpCommand", body)["value"])

    def log(self) -> list[str]:
        """Returns what the browser has logged since it was last asked."""
        found = self._asked(lambda: self.driver.execute("getLog", {"type": "browser"}))
        return [entry["message"] for entry in found["value"]]

    def _in(self, handle: str, ask: Callable[[], Result]) -> Result:
        with self.lock:
            if self._current != handle:
                self._asked(lambda: self.driver.switch_to.window(handle))
                self._current = handle
            return self._asked(ask)

    def _asked(self, ask: Callable[[], Result]) -> Result:
        """Asks the driver; what only a new browser can mend becomes one kind of error."""
        from selenium.common.exceptions import JavascriptException, UnexpectedAlertPresentException, WebDriverException
        from urllib3.exceptions import HTTPError

        try:
            return ask()
        except (JavascriptException, UnexpectedAlertPresentException):
            raise
        except WebDriverException as error:
            if _moving(str(error.msg)):
                raise
            raise BrowserLostError(f"The browser is gone: {error.msg}") from error
        except (HTTPError, OSError) as error:
            raise BrowserLostError(f"The browser's driver does not answer: {error}") from error

    def _new_tab(self) -> str:
        self.driver.switch_to.new_window("tab")
        return str(self.driver.current_window_handle)

    def _start(self) -> None:
        browser, driver = self.settings.programs()
        folder = tempfile.mkdtemp(prefix="skillc-browser-")
        self._processes = _launch(driver, folder)
        self._end = weakref.finalize(self, _end, self._processes)
        try:
            self.driver = _connect(self.settings, browser, _port(self._processes.driver, self.settings), folder)
        except BaseException:
            self._end()
            raise
        self._first = self._current = self._asked(lambda: self.driver.current_window_handle)


def _moving(message: str) -> bool:
    """Whether a driver's complaint only says that the page was on its way to another one."""
    return any(sign in message for sign in _ON_ITS_WAY)


def _launch(driver: str, folder: str) -> _Processes:
    # Files that Chromium leaves for its own lie in the folder; signals of a terminal do not reach the group.
    own = {**os.environ, "TMPDIR": folder, "HOME": folder, "SE_OFFLINE": "true", "SE_AVOID_STATS": "true"}
    process = subprocess.Popen(
        [driver, "--port=0", "--log-level=SEVERE"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=own,
        start_new_session=True,
    )
    watch = subprocess.Popen(
        ["/bin/sh", "-c", _WATCH, "webshop-watch", str(process.pid), folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    return _Processes(process, watch, folder, os.getpid())


def _port(driver: subprocess.Popen[bytes], settings: BrowserSettings) -> int:
    assert driver.stdout is not None
    for line in driver.stdout:
        if found := _STARTED.search(line):
            return int(found[1])
    raise EngineError(f"The browser's driver ended with status {driver.wait()} before it could be spoken to.")


def _connect(settings: BrowserSettings, browser: str, port: int, folder: str) -> Remote:
    try:
        from selenium.common.exceptions import WebDriverException
        from selenium.webdriver import ChromeOptions, Remote
        from selenium.webdriver.chrome.remote_connection import ChromeRemoteConnection
        from selenium.webdriver.common.proxy import Proxy, ProxyType
        from selenium.webdriver.remote.client_config import ClientConfig
        from urllib3.exceptions import HTTPError
    except ImportError as error:
        raise missing_extra("Selenium", "browser") from error
    options = ChromeOptions()
    options.binary_location, options.page_load_strategy = browser, "eager"
    for flag in (*filter(None, _FLAGS), *_own_flags(settings, folder)):
        options.add_argument(flag)
    options.add_experimental_option("prefs", dict.fromkeys(_OFF, False))
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    address = f"http://127.0.0.1:{port}"
    direct = Proxy({"proxyType": ProxyType.DIRECT})
    client = ClientConfig(address, keep_alive=True, proxy=direct, timeout=_START_SECONDS)
    try:
        driver = Remote(ChromeRemoteConnection(address, client_config=client), options=options)
    except (WebDriverException, HTTPError, OSError) as error:
        raise EngineError(f"The browser {browser} does not start: {error}") from error
    client.timeout = max(1, int(settings.timeout))
    return driver


def _own_flags(settings: BrowserSettings, folder: str) -> list[str]:
    # A name is looked up nowhere but at the site, whatever a page or the browser itself asks for.
    known = ", ".join(f"EXCLUDE {name}" for name in filter(None, ("127.0.0.1", "localhost", settings.site)))
    flags = [f"--user-data-dir={folder}/profile", f"--host-resolver-rules=MAP * ~NOTFOUND, {known}"]
    flags.append(f"--window-size={settings.width},{settings.height}")
    if not settings.pictures:
        flags.append("--blink-settings=imagesEnabled=false")
    if settings.window and not os.environ.get("DISPLAY") and not os.environ.get("WAYLAND_DISPLAY"):
        raise ConfigError("render_mode='human' shows a window, and there is no screen: set DISPLAY, or leave it out.")
    return flags if settings.window else [*flags, "--headless", "--hide-scrollbars"]


def _end(processes: _Processes) -> None:
    """Kills what belongs to a browser, unless this is a process that was forked from the one that started it."""
    if processes.owner != os.getpid():
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(processes.driver.pid, signal.SIGKILL)
    processes.driver.wait()
    for pipe in (processes.driver.stdout, processes.watch.stdin):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    shutil.rmtree(processes.folder, ignore_errors=True)
    processes.watch.wait()
