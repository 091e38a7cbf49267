"""Starting a browser: programs, flags, preferences, its driver's processes, and what ends them whatever happens."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from skillc_gym.errors import ConfigError, EngineError, MissingDataError, needs_extra
from skillc_gym.pages import resource

if TYPE_CHECKING:
    from selenium.webdriver import Remote

# A shell is Chromium without the windows, tabs and menus: it needs half the processor time.
SHELLS = ("chromium-headless-shell", "chrome-headless-shell", "headless_shell")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
# Ends the driver's processes and removes their files as soon as the pipe to it is closed, be it by our death.
_WATCH = 'read -r _; kill -s KILL -- "-$1" 2>/dev/null; rm -rf -- "$2" 2>/dev/null || { sleep 1; rm -rf -- "$2"; }'
_SWITCHED_OFF = (
    *("autofill.profile_enabled", "autofill.credit_card_enabled", "credentials_enable_service"),
    *("profile.password_manager_enabled", "safebrowsing.enabled", "search.suggest_enabled"),
    *("signin.allowed", "translate.enabled"),
)
"""Preferences that would ask others about pages, forms and words."""
_START_SECONDS = 120
_STARTED = re.compile(rb"started successfully on port (\d+)")


@dataclass(frozen=True)
class BrowserSettings:
    """What a browser is started with, as `WebShopBrowserEnv` has it.

    ``pictures`` says whether pages are looked at: if not, their pictures are not loaded, and a headless shell draws no
    frames. ``site`` is the name of a site elsewhere, which may be looked up.
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
        """Returns the programs of browser and driver; MissingDataError if one of them is not there."""
        names = BROWSERS if self.window else (*SHELLS, *BROWSERS)
        return _program("browser", self.browser, names), _program("driver", self.driver, ("chromedriver",))

    def flags(self) -> list[str]:
        """Returns the arguments of the browser; ConfigError for a window where there is no screen."""
        flags = [line for line in resource(__package__, "chromium_flags.txt").splitlines() if line.startswith("--")]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            flags.append("--no-sandbox")
        # A name is looked up nowhere but at the site, whatever a page or the browser itself asks for.
        known = ", ".join(f"EXCLUDE {name}" for name in filter(None, ("127.0.0.1", "localhost", self.site)))
        flags.append(f"--host-resolver-rules=MAP * ~NOTFOUND, {known}")
        flags.append(f"--window-size={self.width},{self.height}")
        if not self.pictures:
            flags += ["--blink-settings=imagesEnabled=false", "--enable-begin-frame-control"]
        if self.window and not os.environ.get("DISPLAY") and not os.environ.get("WAYLAND_DISPLAY"):
            raise ConfigError(
                "render_mode='human' shows a window, and there is no screen: set DISPLAY or leave it out."
            )
        return flags if self.window else [*flags, "--headless", "--hide-scrollbars"]


def _program(kind: str, named: str | None, names: tuple[str, ...]) -> str:
    looked_for = (named,) if named else names
    found = next((path for path in map(shutil.which, looked_for) if path), None)
    if found is None:
        raise MissingDataError(
            f"No {kind} found: looked in PATH for {', '.join(looked_for)}. On Debian and Ubuntu: "
            "apt-get install chromium chromium-headless-shell chromium-driver; elsewhere name the program with "
            f"{kind}=..."
        )
    return found


class Processes(NamedTuple):
    """A driver with all that it started, the process that watches over them, and their folder."""

    driver: subprocess.Popen[bytes]
    watch: subprocess.Popen[bytes]
    folder: str
    owner: int


def launch(driver: str) -> Processes:
    """Starts a driver in a process group of its own, with a folder for all files of its browser."""
    folder = tempfile.mkdtemp(prefix="skillc-browser-")
    # Files that Chromium leaves for its own lie in the folder; signals of a terminal do not reach the group.
    own = {**os.environ, "TMPDIR": folder, "HOME": folder, "SE_OFFLINE": "true", "SE_AVOID_STATS": "true"}
    quiet: dict[str, Any] = {"stderr": subprocess.DEVNULL, "start_new_session": True}
    command = [driver, "--port=0", "--log-level=SEVERE"]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=own, **quiet)
    watched = ["/bin/sh", "-c", _WATCH, "webshop-watch", str(process.pid), folder]
    watch = subprocess.Popen(watched, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, **quiet)
    return Processes(process, watch, folder, os.getpid())


def connect(processes: Processes, settings: BrowserSettings, browser: str) -> Remote:
    """Lets the driver start a browser; EngineError if one of them does not start."""
    with needs_extra("Selenium", "browser"):
        from selenium.common.exceptions import WebDriverException
        from selenium.webdriver import ChromeOptions, Remote
        from selenium.webdriver.chrome.remote_connection import ChromeRemoteConnection
        from selenium.webdriver.common.proxy import Proxy, ProxyType
        from selenium.webdriver.remote.client_config import ClientConfig
        from urllib3.exceptions import HTTPError
    options = ChromeOptions()
    # With any other strategy the driver asks the page four times around every command whether it has been loaded.
    options.binary_location, options.page_load_strategy = browser, "none"
    for flag in settings.flags():
        options.add_argument(flag)
    options.add_experimental_option("prefs", dict.fromkeys(_SWITCHED_OFF, False))
    address = f"http://127.0.0.1:{_port(processes.driver)}"
    direct = Proxy({"proxyType": ProxyType.DIRECT})
    client = ClientConfig(address, keep_alive=True, proxy=direct, timeout=_START_SECONDS)
    try:
        driver = Remote(ChromeRemoteConnection(address, client_config=client), options=options)
    except (WebDriverException, HTTPError, OSError) as error:
        raise EngineError(f"The browser {browser} does not start: {error}") from error
    client.timeout = max(1, int(settings.timeout))
    return driver


def _port(driver: subprocess.Popen[bytes]) -> int:
    assert driver.stdout is not None
    for line in driver.stdout:
        if found := _STARTED.search(line):
            return int(found[1])
    raise EngineError(f"The browser's driver ended with status {driver.wait()} before it could be spoken to.")


def end(processes: Processes) -> None:
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
