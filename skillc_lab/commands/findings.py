"""What an examination found, and how it is written down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

__all__ = ["Finding", "as_json", "as_text"]

Status = Literal["ok", "missing", "note"]


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    section: str
    """Heading: software, data, machine, model."""
    name: str
    """What was looked at."""
    status: Status
    """"ok", "missing", or "note" for what limits without stopping anything."""
    found: str
    """What is there."""
    remedy: str = ""
    """The command that mends it."""
    asked: bool = False
    """Whether somebody asked for it by name, so that its absence is a failure."""


_MARKS: Mapping[Status, str] = {"ok": "ok", "missing": "--", "note": "!!"}


def as_text(findings: Sequence[Finding]) -> str:
    """The findings under their headings."""
    lines: list[str] = []
    for section in dict.fromkeys(finding.section for finding in findings):
        lines += ["", section]
        for finding in (each for each in findings if each.section == section):
            lines.append(f"  {_MARKS[finding.status]:<3} {finding.name}: {finding.found}")
            lines += [f"      {finding.remedy}"] if finding.remedy else []
    return "\n".join(lines[1:])


def as_json(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """The findings as JSON-able values."""
    return [asdict(finding) for finding in findings]
