"""What a benchmark found, and how it is written down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = ["Bench", "Figure", "markdown"]


@dataclass(frozen=True)
class Figure:
    """One measurement.

    Attributes:
        name: What was measured, with its unit.
        ours: Our value.
        upstream: Upstream's value, None if there is none; of the same run unless `recorded`.
        goal: The value to reach, None for none.
        more_is_better: Whether the goal is a lower bound.
        recorded: Whether upstream's value is not of this run but an older record.
    """

    name: str
    ours: float
    upstream: float | None = None
    goal: float | None = None
    more_is_better: bool = False
    recorded: bool = False

    @property
    def met(self) -> bool:
        """Whether the goal is reached; true without a goal."""
        if self.goal is None:
            return True
        return self.ours >= self.goal if self.more_is_better else self.ours <= self.goal


@dataclass(frozen=True)
class Bench:
    """The figures of one part, and what they were measured on."""

    title: str
    subject: str
    figures: list[Figure]
    versions: dict[str, str] = field(default_factory=dict)
    stand_in: bool = False
    """Whether generated content stood in for the real data."""

    @property
    def met(self) -> bool:
        """Whether every goal is reached."""
        return all(figure.met for figure in self.figures)

    def record(self) -> dict[str, Any]:
        """Returns everything as a JSON-able record."""
        return {"subject": self.subject, "figures": [{**asdict(figure), "met": figure.met} for figure in self.figures]}


def markdown(bench: Bench, command: str, versions: Mapping[str, str]) -> str:
    """Writes a part as a table."""
    rows = [("measured", "ours", "upstream", "goal", "")]
    rows += [("---", "---:", "---:", "---:", "---")]
    rows += [
        (
            figure.name,
            _number(figure.ours),
            _number(figure.upstream) + " (recorded)" * (figure.recorded and figure.upstream is not None),
            _goal(figure),
            "" if figure.goal is None else "met" if figure.met else "MISSED",
        )
        for figure in bench.figures
    ]
    table = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    named = ", ".join(f"{name} {version}" for name, version in versions.items())
    return f"# {bench.title}\n\n{bench.subject}\n\n{table}\n\n`{command}` ({named})\n"


def _goal(figure: Figure) -> str:
    return "" if figure.goal is None else f"{'>=' if figure.more_is_better else '<='} {_number(figure.goal)}"


def _number(value: float | None) -> str:
    if value is None:
        return ""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"
