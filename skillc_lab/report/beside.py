"""Runs from one start beside each other: success by updates in both conditions, and their held-out tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from skillc_lab.report.records import RunRecords
from skillc_lab.report.shell import figure, table
from skillc_lab.report.sources import read_evaluation
from skillc_lab.report.style import TypeStyle, figure_style, new_figure, rate_axis, step_axis, title, type_styles
from trainers.evaluation.paired_report import PairedReport, compare_reports
from trainers.stats import Interval, wilson

__all__ = ["BesideRun", "beside_section", "read_run", "save_beside"]

_ARMS = {"without": "Without the skill", "with": "With the skill"}


@dataclass(frozen=True)
class BesideRun:
    """One of the runs.

    Attributes:
        name: Its method.
        run: Its metrics.
        before: The held-out tasks before training, the same for all.
        after: The same after training.
    """

    name: str
    run: RunRecords
    before: PairedReport | None
    after: PairedReport | None

    @property
    def tokens(self) -> int:
        """Generated in training."""
        counted = self.run.overall("tokens_total").values
        return int(counted[-1]) if counted else 0


def read_run(folder: Path) -> BesideRun:
    """Reads a run's folder; evaluations may be missing.

    Raises:
        MissingDataError: There is no ``metrics.jsonl``.
    """
    run = RunRecords.read(folder)
    name = str(run.config.get("method", folder.name))
    return BesideRun(name, run, read_evaluation(folder / "before").report, read_evaluation(folder / "after").report)


def save_beside(runs: Sequence[BesideRun], path: Path) -> Path:
    """Draws a panel per condition with a line per run into a PNG, 95 % intervals over the panel's tasks as bands.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    styles = type_styles([each.name for each in runs])
    with figure_style():
        canvas = new_figure(9.0, 3.9)
        for axes, (arm, name) in zip(canvas.subplots(1, 2), _ARMS.items(), strict=True):
            for each in runs:
                _draw_line(axes, each.run, arm, styles[each.name])
            tasks = runs[0].run.panel_size()
            title(axes, name, f"validation panel of {tasks} tasks; bands: 95 % over tasks")
            step_axis(axes, max((each.run for each in runs), key=lambda run: run.total_steps))
            rate_axis(axes, "success rate")
        canvas.axes[0].legend(loc="upper left")
        path.parent.mkdir(parents=True, exist_ok=True)
        canvas.savefig(path)
    return path


def beside_section(runs: Sequence[BesideRun], picture: Path) -> str:
    """The page's part: the picture, and a table of held-out success with the differences from the first run."""
    names = " beside ".join(escape(each.name) for each in runs)
    rows = [_start_row(runs[0]), *map(_row, runs), *(_difference_row(runs[0], other) for other in runs[1:])]
    heads = ("held-out tasks", "without the skill", "with the skill", "updates", "tokens generated")
    return (
        f"<h2>{names}</h2>"
        '<p class="soft">The same start, seed, tasks and number of updates. One run each: the intervals speak of the '
        "choice of tasks, not of other training seeds.</p>"
        f"{figure(picture, f'Success by updates: {names}')}{table(heads, filter(None, rows))}"
        "<p class='soft'>Percent and points with 95 % intervals: Wilson's for rates, Newcombe's for differences.</p>"
    )


def _draw_line(axes: Any, run: RunRecords, arm: str, style: TypeStyle) -> None:
    found, tasks = run.overall(f"overall_{arm}", "validation"), run.panel_size()
    if tasks:
        bounds = [wilson(rate * tasks, tasks) for rate in found.values]
        low, high = [each.low for each in bounds], [each.high for each in bounds]
        axes.fill_between(found.steps, low, high, color=style.colour, alpha=0.14, linewidth=0)
    look = {"color": style.colour, "marker": style.marker, "linestyle": style.linestyle}
    axes.plot(found.steps, found.values, label=style.label, **look)


def _start_row(first: BesideRun) -> str:
    return "" if first.before is None else _cells("before training", first.before, "", "")


def _row(each: BesideRun) -> str:
    if each.after is None:
        return ""
    return _cells(each.name, each.after, str(each.run.last_step), f"{each.tokens:,}")


def _cells(name: str, report: PairedReport, *more: str) -> str:
    found = report.overall
    rates = ((found.sr_without, found.sr_without_interval), (found.sr_with, found.sr_with_interval))
    cells = "".join(f"<td>{100 * rate:.1f} {_ends(interval, '.0f')}</td>" for rate, interval in rates)
    return f"<tr><td>{escape(name)}</td>{cells}{''.join(f'<td>{text}</td>' for text in more)}</tr>"


def _difference_row(first: BesideRun, other: BesideRun) -> str:
    if first.after is None or other.after is None:
        return ""
    changes = (compare_reports(other.after, first.after, skill=skill)["overall"] for skill in (False, True))
    cells = "".join(f"<td>{100 * each.change:+.1f} {_ends(each.interval, '+.0f')}</td>" for each in changes)
    label = f"{escape(first.name)} minus {escape(other.name)}"
    return f'<tr class="all"><td>{label}</td>{cells}<td></td><td></td></tr>'


def _ends(interval: Interval, form: str) -> str:
    return f"<small>[{100 * interval.low:{form}}, {100 * interval.high:{form}}]</small>"
