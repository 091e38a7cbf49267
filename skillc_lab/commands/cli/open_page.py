"""Opening a page in the user's browser, where somebody sits before a screen."""

from __future__ import annotations

import os
import sys
import webbrowser
from pathlib import Path

__all__ = ["has_screen", "open_page"]


def has_screen() -> bool:
    """Whether output goes to a terminal in a graphical session; elsewhere a browser might be a text one."""
    if not sys.stdout.isatty():
        return False
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def open_page(path: Path) -> bool:
    """Opens a page; tells whether a browser took it."""
    return has_screen() and webbrowser.open(path.resolve().as_uri())
