"""The processes of a browser: a driver with all that it starts, and what ends them whatever happens to this one."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
from typing import TYPE_CHECKING, NamedTuple

from skillc_gym.envs.webshop.browser.settings import PREFERENCES, BrowserSettings
from skillc_gym.errors import EngineError, missing_extra

if TYPE_CHECKING:
    from selenium.webdriver import Remote

__all__ = ["Processes", "connect", "end", "launch"]

# Ends the driver's processes and removes their files as soon as the pipe to it is closed, be it by our death.
_WATCH = 'read -r _; kill -s KILL -- "-$1" 2>/dev/null; rm -rf -- "$2" 2>/dev/null || { sleep 1; rm -rf -- "$2"; }'
_START_SECONDS = 120
_STARTED = re.compile(rb"started successfully on port (\d+)")


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
    return Processes(process, watch, folder, os.getpid())


def connect(processes: Processes, settings: BrowserSettings, browser: str) -> Remote:
    """Lets the driver start a browser.

    Raises:
        MissingExtraError: Selenium is not installed.
        EngineError: The driver or the browser does not start.
    """
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
    # With any other strategy the driver asks the page four times around every command whether it has been loaded.
    options.binary_location, options.page_load_strategy = browser, "none"
    for flag in settings.flags():
        options.add_argument(flag)
    options.add_experimental_option("prefs", PREFERENCES)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
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
