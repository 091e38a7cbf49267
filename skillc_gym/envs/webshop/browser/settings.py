"""What a browser is started with: programs, flags, preferences."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass

from skillc_gym.errors import ConfigError, MissingDataError

__all__ = ["PREFERENCES", "BrowserSettings"]

# A shell is Chromium without the windows, tabs and menus that nobody sees: it needs half the processor time.
_SHELLS = ("chromium-headless-shell", "chrome-headless-shell", "headless_shell")
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
    "--disable-ipc-flooding-protection",  # it would drop addresses of pages exchanged at more than 20 a second
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
PREFERENCES = dict.fromkeys(
    (
        "autofill.profile_enabled",
        "autofill.credit_card_enabled",
        "credentials_enable_service",
        "profile.password_manager_enabled",
        "safebrowsing.enabled",
        "search.suggest_enabled",
        "signin.allowed",
        "translate.enabled",
    ),
    False,
)
"""By these a browser would ask others about pages, forms and words."""


@dataclass(frozen=True)
class BrowserSettings:
    """What a browser is started with.

    Attributes:
        browser: Chromium's program; found in PATH by default, its headless shell first unless there is a window.
        driver: ChromeDriver's program; found in PATH by default.
        width: Width of the page, in pixels.
        height: Height of the page that is seen at once, in pixels.
        window: Whether to show a window.
        pictures: Whether somebody looks at the pages. If not, their pictures are not loaded, and a headless shell
            draws no frames.
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
        names = _BROWSERS if self.window else (*_SHELLS, *_BROWSERS)
        return _program("browser", self.browser, names), _program("driver", self.driver, ("chromedriver",))

    def flags(self) -> list[str]:
        """Returns the arguments of the browser.

        Raises:
            ConfigError: A window is asked for where there is no screen.
        """
        # A name is looked up nowhere but at the site, whatever a page or the browser itself asks for.
        known = ", ".join(f"EXCLUDE {name}" for name in filter(None, ("127.0.0.1", "localhost", self.site)))
        flags = [*filter(None, _FLAGS), f"--host-resolver-rules=MAP * ~NOTFOUND, {known}"]
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
