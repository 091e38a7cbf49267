"""Checks of the folders that commands write to."""

from __future__ import annotations

from pathlib import Path

from skillc_gym.errors import ConfigError

__all__ = ["require_empty"]


def require_empty(folder: Path) -> None:
    """Refuses a folder that holds something, and a place where none can be made.

    Raises:
        ConfigError: If the folder is in use, or a file stands in its way.
    """
    above = next(place for place in (folder, *folder.parents) if place.exists())
    if not above.is_dir():
        raise ConfigError(f"{above} is a file; {folder} is not an empty folder; give a new --out, or empty it first.")
    if folder.exists() and any(folder.iterdir()):
        raise ConfigError(f"{folder} exists and is not an empty folder; give a new --out, or empty it first.")
