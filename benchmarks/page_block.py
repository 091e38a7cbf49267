"""The parts of a page that a command writes: between ``<!-- NAME:start -->`` and ``<!-- NAME:end -->``."""

from __future__ import annotations

from pathlib import Path

from skillc_gym.errors import ConfigError

__all__ = ["renewed", "write_block"]


def renewed(page: str, name: str, text: str) -> str:
    """A page with another text between the marks of a name.

    Raises:
        ConfigError: The page does not have each of the marks once.
    """
    start, end = f"<!-- {name}:start -->", f"<!-- {name}:end -->"
    before, began, rest = page.partition(start)
    _, ended, after = rest.partition(end)
    if not (began and ended) or start in rest or end in before + after:
        raise ConfigError(f"A page needs {start} and behind it {end}, once each, around what is to be renewed")
    return f"{before}{start}\n{text}\n{end}{after}"


def write_block(path: Path, name: str, text: str) -> None:
    """Renews a part of a file.

    Raises:
        ConfigError: The file does not have each of the marks once.
    """
    path.write_text(renewed(path.read_text(encoding="utf-8"), name, text), encoding="utf-8")
