"""Panels on what evaluations found: one of them alone, and two of the same panel before and after training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from skillc_lab.report.style import WITH, WITHOUT, title
from trainers.evaluation.paired_report import PairedCounts, PairedReport
from trainers.stats import Interval
from trainers.tracking.progress import short_type

__all__ = ["draw_before_after", "draw_outcome"]

_ARMS = ((WITH, "with", -1), (WITHOUT, "without", 1))


def draw_outcome(axes: Any, report: PairedReport, order: Sequence[str] = ()) -> None:
    """Success per type in both conditions, with intervals.

    Args:
        axes: Where to draw.
        report: The evaluation.
        order: Task types in the run's order; others follow by name.
    """
    rows = [(name, [counts]) for name, counts in _rows(report, order)]
    for row, (_, [counts]) in enumerate(rows):
        for style, key, side in _ARMS:
            _dot(axes, row + 0.13 * side, _rate(counts, key), style, filled=True)
    _finish(axes, [(name, counts[0].n) for name, counts in rows])
    title(axes, "Success on held-out tasks", "bars: 95 % intervals")
    _legend(axes, [(style, False, style["label"]) for style, _, _ in _ARMS])


def draw_before_after(axes: Any, before: PairedReport, after: PairedReport, order: Sequence[str] = ()) -> None:
    """Success per type before and after training, in both conditions, with intervals and an arrow from then to now.

    Args:
        axes: Where to draw.
        before: Evaluation before training.
        after: Evaluation after it.
        order: Task types in the run's order; others follow by name.
    """
    last = dict(_rows(after, order))
    rows = [(name, first, last[name]) for name, first in _rows(before, order)]
    for row, (_, first, second) in enumerate(rows):
        for style, key, side in _ARMS:
            upper, lower = (row + side * 0.19 + offset for offset in (-0.08, 0.08))
            start, end = _rate(first, key), _rate(second, key)
            _arrow(axes, (start[0], upper), (end[0], lower), style["color"])
            _dot(axes, upper, start, style, filled=False)
            _dot(axes, lower, end, style, filled=True)
    _finish(axes, [(name, first.n) for name, first, _ in rows])
    title(
        axes,
        "Success on held-out tasks before and after training",
        "an arrow leads from before to after; bars: 95 % intervals",
    )
    times = ((True, "before"), (False, "after"))
    _legend(axes, [(s, hollow, f"{s['label']}, {when}") for s, _, _ in _ARMS for hollow, when in times])


def _rows(report: PairedReport, order: Sequence[str]) -> list[tuple[str, PairedCounts]]:
    names = [*(kind for kind in order if kind in report.per_type), *(k for k in report.per_type if k not in order)]
    return [*((short_type(kind), report.per_type[kind]) for kind in names), ("all", report.overall)]


def _rate(counts: PairedCounts, key: str) -> tuple[float, Interval]:
    if key == "with":
        return counts.sr_with, counts.sr_with_interval
    return counts.sr_without, counts.sr_without_interval


def _dot(axes: Any, y: float, rate: tuple[float, Interval], style: Mapping[str, Any], *, filled: bool) -> None:
    value, interval = rate
    colour = style["color"]
    axes.plot([interval.low, interval.high], [y, y], color=colour, linewidth=1.2, alpha=1.0 if filled else 0.5)
    axes.plot(value, y, marker=style["marker"], color=colour, markersize=6, zorder=4, mfc=colour if filled else "white")


def _arrow(axes: Any, start: tuple[float, float], end: tuple[float, float], colour: str) -> None:
    if abs(end[0] - start[0]) < 0.02:
        return  # the points touch; an arrow between them would be all head
    look = {"arrowstyle": "-|>", "color": colour, "linewidth": 1.0, "alpha": 0.55, "shrinkA": 4, "shrinkB": 4}
    axes.annotate("", xy=end, xytext=start, arrowprops=look, zorder=3)


def _finish(axes: Any, rows: Sequence[tuple[str, int]]) -> None:
    axes.axhline(len(rows) - 1.5, color="#c9cdd4", linewidth=0.8)
    axes.set_yticks(range(len(rows)), [f"{name}  (n = {n})" for name, n in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlim(-0.02, 1.02)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1.0], ["0", "0.25", "0.5", "0.75", "1"])
    axes.set_xlabel("success rate")
    axes.grid(visible=False, axis="y")


def _legend(axes: Any, entries: Sequence[tuple[Mapping[str, Any], bool, str]]) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=s["color"], marker=s["marker"], mfc="white" if hollow else s["color"], linestyle="none",
               label=label)
        for s, hollow, label in entries
    ]  # fmt: skip
    axes.figure.legend(handles=handles, loc="outside lower center", ncols=2)
