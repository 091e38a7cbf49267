"""Tables as data: Markdown, HTML or plain text; the records behind them, and columns of methods' own parts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from skillc_gym.errors import ConfigError, SkillCError
from trainers.evaluation import PairedOutcome
from trainers.tracking import provenance, read_object, write_json


class Cell(NamedTuple):
    """A figure with a note on it, such as its interval; HTML shows the note small, below the figure."""

    figure: str
    note: str = ""

    def __str__(self) -> str:
        return f"{self.figure} {self.note}".strip()


Row = Sequence["str | int | Cell | None"]
"""Cells from left to right: text as it stands, counts with commas, None for an empty cell."""


@dataclass
class Table:
    """Rows under their heads.

    Attributes:
        heads: Names of the columns.
        rows: Their cells; each row has one for every column.
        numbers: Places of columns that stand on the right: in Markdown and plain text. HTML sets all but the first
            column on the right unless ``words``.
        words: Whether all columns of the HTML stand on the left.
        strong: Numbers of the rows that the HTML emphasises.

    Example:
        >>> print(Table(["method", "runs"], [["skillc", 1200]]).markdown())
        | method | runs |
        |---|---|
        | skillc | 1,200 |
    """

    heads: Sequence[str]
    rows: Sequence[Row] = ()
    numbers: Collection[int] = ()
    words: bool = False
    strong: Collection[int] = ()

    def markdown(self) -> str:
        """The table in Markdown's form, without a line's end."""
        rules = ["---:" if place in self.numbers else "---" for place in range(len(self.heads))]
        lines = [[cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in self._lines()]
        shown = [f"| {' | '.join(line)} |" for line in lines]
        return "\n".join([shown[0], f"|{'|'.join(rules)}|", *shown[1:]])

    def html(self) -> str:
        """The table in HTML, inside an element that scrolls sideways; figures and heads are escaped."""
        heads = "".join(f"<th>{escape(head)}</th>" for head in self.heads)
        rows = "".join(self._html_row(place, row) for place, row in enumerate(self.rows))
        css = ' class="words"' if self.words else ""
        return f'<div class="scroll"><table{css}><tr>{heads}</tr>{rows}</table></div>'

    def text(self) -> str:
        """The table in columns of plain text, two spaces apart."""
        lines = self._lines()
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(
                cell.rjust(width) if place in self.numbers else cell.ljust(width)
                for place, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        )

    def _lines(self) -> list[list[str]]:
        return [list(self.heads), *([_shown(cell) for cell in row] for row in self.rows)]

    def _html_row(self, place: int, row: Row) -> str:
        css = ' class="all"' if place in self.strong else ""
        return f"<tr{css}>{''.join(map(_html_cell, row))}</tr>"


def _shown(cell: str | int | Cell | None) -> str:
    return "" if cell is None else f"{cell:,}" if isinstance(cell, int) else str(cell)


def _html_cell(cell: str | int | Cell | None) -> str:
    if isinstance(cell, Cell) and cell.note:
        return f"<td>{escape(cell.figure)}<br><small>{escape(cell.note)}</small></td>"
    return f"<td>{escape(_shown(cell))}</td>"


def rate(mean: float, interval: Iterable[float] | None = None) -> str:
    """A rate in per cent: ``56.9 [50, 64]``; ends outside of 0 to 1 are cut."""
    ends = ", ".join(f"{100 * min(max(end, 0.0), 1.0):.0f}" for end in interval or ())
    return f"{100 * mean:.1f}" + (f" [{ends}]" if ends else "")


def points(mean: float, interval: Iterable[float] | None = None, digits: int = 0) -> str:
    """A difference of rates in points: ``-0.7 [-6, +5]``; ends, of so many decimals, outside of -1 to 1 are cut."""
    ends = ", ".join(f"{100 * min(max(end, -1.0), 1.0):+.{digits}f}" for end in interval or ())
    return f"{100 * mean:+.1f}" + (f" [{ends}]" if ends else "")


def mean_tokens(outcomes: Iterable[PairedOutcome], skill: bool) -> float | None:
    """Mean tokens of an episode, read and written; None where nobody counted."""
    known = tokens_of(outcomes, skill)
    return fmean(known) if known else None


def tokens_of(outcomes: Iterable[PairedOutcome], skill: bool) -> list[int]:
    """Tokens of the episodes of a condition, 0 of one that was cut at once; nothing where nobody counted."""
    arms = [(outcome.arm(skill).tokens, outcome.arm(not skill).tokens) for outcome in outcomes]
    return [own for own, _ in arms if own is not None] if any(map(any, arms)) else []


# Records: what a measurement or a study found, with the revision that it was made on ---------------------------------


def read_json(path: str | Path) -> dict[str, Any]:
    """Reads a record; a ConfigError where there is none, or it holds something else than one JSON object."""
    try:
        return read_object(Path(path))
    except (OSError, ValueError, SkillCError) as error:
        raise ConfigError(f"{path} is no record that can be read: {error}") from error


def write_record(path: Path, values: Mapping[str, Any], git: Mapping[str, Any] | None = None) -> None:
    """Writes a record, marked with the revision that it was made on and whether the tree had changes.

    ``git`` is what both were when a long measurement began; without it they are looked up now.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, {**values, "git": git or provenance()["git"]})


def record_names(paths: Sequence[Path]) -> list[str]:
    """What a table calls the records that it was made from: no folder of a machine, only what was given below it."""
    return [path.name if path.is_absolute() else path.as_posix() for path in paths]


# What a method's own parts did in runs: columns beside its score, where it has such parts -----------------------------


def _mean(form: str, factor: float = 1.0) -> Callable[[Sequence[float]], str]:
    return lambda values: f"{factor * fmean(values):{form}}"


ACTED: Mapping[str, tuple[str, Callable[[Sequence[Any]], str]]] = {
    "bank_uses": ("bank uses", _mean(",.0f")),
    "entries_added": ("entries added", _mean(",.0f")),
    "distracted_share": ("texts that do not fit, %", _mean(".0f", 100)),
    "teacher_part": ("teacher's part", _mean(".3g")),
    "relabelled_updates": ("updates with rows of its own, %", _mean(".0f", 100)),
    "withdrawn_at": ("skill withdrawn at update", lambda values: ", ".join(map(str, values))),
}
"""Heads, and how the figures of several seeds are shown, by the names of :func:`trainers.training.what_acted`; a run
that also says ``withdraws`` is of a method that may take the skill away."""


_MOST = 1e15
"""Beyond any count of a run: what a damaged file says."""


def acted_cell(name: str, runs: Iterable[Mapping[str, Any]]) -> str:
    """A figure over a method's runs; "" where it has no such part, or the runs do not say."""
    known = [run for run in runs if run]
    values = [run[name] for run in known if isinstance(run.get(name), int | float) and abs(run[name]) < _MOST]
    if name == "withdrawn_at" and any(run.get("withdraws") or run.get("withdrawn_types") for run in known):
        left = {True: "not of all types", False: "never"}
        return ", ".join(str(run.get(name) or left[bool(run.get("withdrawn_types"))]) for run in known)
    return ACTED[name][1](values) if values else ""


def acted_heads(runs: Iterable[Mapping[str, Any]]) -> list[str]:
    """The figures that any of the runs has."""
    known = list(runs)
    return [name for name in ACTED if acted_cell(name, known)]
