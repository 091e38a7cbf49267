"""Tables of settings and commands for the documentation, from the doc strings of the help."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import MISSING, fields
from typing import Any, get_type_hints

from skillc_lab.cli.main import command_modules
from skillc_lab.cli.options import Option, options_of
from trainers.config import Settings


def settings_tables() -> str:
    """All settings of training: one heading and table per group."""
    groups = get_type_hints(Settings)
    return "\n\n".join(
        f"### {group.name.replace('_', ' ').capitalize()}\n\n{_table(options_of(groups[group.name]).values())}"
        for group in fields(Settings)
    )


def completed(page: str) -> str:
    """The page of commands, with a row more in its table for every command that it does not name."""
    *_, last = re.finditer(r"^\| `skillc .*$", page, re.MULTILINE)
    cells = " ".join(re.findall(r"^\| (`skillc [^|]*)", page, re.MULTILINE))
    missing = {
        name: summary
        for name, (_, summary) in command_modules().items()
        if not re.search(rf"`(?:skillc )?(?:tools )?{name.removeprefix('tools ')}[ `]", cells)
    }
    rows = "".join(f"\n| `skillc {name}` | {summary} | |" for name, summary in missing.items())
    return page[: last.end()] + rows + page[last.end() :]


def _table(options: Iterable[Option]) -> str:
    rows = [f"| `{option.name}` | {_default(option.default)} | {option.doc.replace('``', '`')} |" for option in options]
    return "\n".join(["| setting | default | meaning |", "|---|---|---|", *rows])


def _default(value: Any) -> str:
    if value is MISSING:
        return "required"
    return "none" if value in (None, "", {}, ()) else f"`{str(value).lower() if isinstance(value, bool) else value}`"
