"""The PNG figures of a run, of evaluations and of compared runs, as wide as a page shows without shrinking much."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from skillc_gym.files import replace_file
from skillc_lab.report.panels import (
    draw_active,
    draw_advantages,
    draw_cuts,
    draw_failed_rewarded,
    draw_fraction,
    draw_gap,
    draw_gate,
    draw_lengths,
    draw_success,
    draw_type_success,
    quiet_diagnostics,
    type_legend,
)
from skillc_lab.report.records import ComparedRun, RunRecords
from skillc_lab.report.style import (
    SOFT,
    WITH,
    WITHOUT,
    TypeStyle,
    figure_style,
    new_figure,
    rate_axis,
    rates_across,
    step_axis,
    title,
    type_styles,
)
from trainers.evaluation import PairedCounts, PairedReport
from trainers.stats import Interval, wilson
from trainers.tracking import short_type

__all__ = ["draw_before_after", "save_figures", "save_outcome_figure", "save_versus"]

_WIDTH = 9.0
_NARROW = 7.2
_SIDES = ((WITH, "with", -1), (WITHOUT, "without", 1))


def save_figures(
    run: RunRecords, out: Path, *, before: PairedReport | None = None, after: PairedReport | None = None
) -> dict[str, Path]:
    """Draws everything the records hold.

    Args:
        run: The run's metrics.
        out: Folder for the PNG files; made if it is missing.
        before: Evaluation of the policy before training.
        after: Evaluation after it, on the same panel.

    Returns:
        Path of each figure, by name: overview, success, success_by_type, gap, gate, active, rollout_fraction,
        diagnostics and, with both evaluations, before_after.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    strips = 1.5 + 0.55 * max(2, len(run.task_types))
    with figure_style():
        figures: dict[str, Any] = {
            "overview": _overview(run),
            "success": _single(draw_success, run),
            "success_by_type": _by_type(run),
            "gap": _single(draw_gap, run, types=True),
            "gate": _single(draw_gate, run, height=strips),
            "active": _single(draw_active, run),
            "rollout_fraction": _single(draw_fraction, run, height=strips),
            "diagnostics": _diagnostics(run),
        }
        if before is not None and after is not None:
            figures["before_after"] = _outcomes(before, after, run.task_types)
        return _save(figures, out)


def save_outcome_figure(report: PairedReport, out: Path, *, before: PairedReport | None = None) -> dict[str, Path]:
    """Draws evaluations without a run: ``before_after`` if there are two, else ``outcome``; errors as above."""
    with figure_style():
        if before is not None:
            return _save({"before_after": _outcomes(before, report)}, out)
        return _save({"outcome": _outcomes(report)}, out)


def save_versus(runs: Sequence[ComparedRun], path: Path) -> Path:
    """Draws success by updates: a plot per condition, a line per run, 95 % intervals over the panel's tasks as bands.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    styles = type_styles([each.name for each in runs])
    longest = max((each.run for each in runs), key=lambda run: run.total_steps)
    with figure_style():
        figure = new_figure(_WIDTH, 3.9)
        for axes, (arm, name) in zip(figure.subplots(1, 2), (("without", "Without"), ("with", "With")), strict=True):
            for each in runs:
                _draw_line(axes, each.run, arm, styles[each.name])
            tasks = runs[0].run.panel_size()
            title(axes, f"{name} the skill", f"validation panel of {tasks} tasks; bands: 95 % over tasks")
            step_axis(axes, longest)
            rate_axis(axes, "success rate")
        figure.axes[0].legend(loc="upper left")
        _save({path.stem: figure}, path.parent)
    return path


def _save(figures: Mapping[str, Any], out: Path) -> dict[str, Path]:
    drawn = {name: out / f"{name}.png" for name in figures}
    for name, figure in figures.items():
        picture = BytesIO()
        figure.savefig(picture, format="png")
        replace_file(drawn[name], [picture.getvalue()])  # a link in its place is replaced, not followed
    return drawn


def _single(
    draw: Callable[[Any, RunRecords], None], run: RunRecords, *, types: bool = False, height: float = 4.3
) -> Any:
    figure = new_figure(_NARROW, height)
    draw(figure.subplots(), run)
    if types:
        type_legend(figure, run.task_types)
    return figure


def _overview(run: RunRecords) -> Any:
    height = 1.1 + 0.36 * max(3, len(run.task_types))
    figure = new_figure(_WIDTH, 7.0 + height)
    grid = figure.subplot_mosaic(
        [["success", "success"], ["active", "gap"], ["gate", "fraction"]], height_ratios=[3.2, 3.1, height]
    )
    draws = {"success": draw_success, "active": draw_active, "gap": draw_gap}
    for name, draw in {**draws, "gate": draw_gate, "fraction": draw_fraction}.items():
        draw(grid[name], run)
    type_legend(figure, run.task_types)
    return figure


def _by_type(run: RunRecords) -> Any:
    kinds = run.task_types
    columns = min(3, max(1, len(kinds)))
    rows = max(1, -(-len(kinds) // columns))
    figure = new_figure(_WIDTH if columns > 1 else _NARROW, 2.6 * rows + (0.9 if columns > 1 else 2.0))
    axes = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).flat
    for kind, ax in zip(kinds, axes, strict=False):
        draw_type_success(ax, run, kind)
        ax.label_outer()
    for spare in figure.axes[len(kinds) :]:
        spare.set_visible(False)
    figure.suptitle(
        "Success per type on the held-back panel\n95 % intervals; grey: retired", x=0.01, ha="left", fontsize=11
    )
    if kinds:
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure


def _diagnostics(run: RunRecords) -> Any:
    """The plots that have something to show; what has not stands below them as text."""
    quiet = quiet_diagnostics(run)
    optional = {"failed_rewarded": draw_failed_rewarded, "cuts": draw_cuts}
    draws = [draw_advantages, draw_lengths, *(draw for name, draw in optional.items() if name not in quiet)]
    rows = -(-len(draws) // 2)
    figure = new_figure(_WIDTH, 3.3 * rows + 0.2)
    axes = list(figure.subplots(rows, 2, squeeze=False).flat)
    for draw, ax in zip(draws, axes, strict=False):
        draw(ax, run)
    for spare in axes[len(draws) :]:
        spare.set_visible(False)
    figure.supxlabel(" ".join(quiet.values()), x=0.01, ha="left", fontsize=8.5, color=SOFT)
    return figure


def _draw_line(axes: Any, run: RunRecords, arm: str, style: TypeStyle) -> None:
    found, tasks = run.overall(f"overall_{arm}", "validation"), run.panel_size()
    if tasks:
        bounds = [wilson(rate * tasks, tasks) for rate in found.values]
        low, high = [each.low for each in bounds], [each.high for each in bounds]
        axes.fill_between(found.steps, low, high, color=style.colour, alpha=0.14, linewidth=0)
    look = {"color": style.colour, "marker": style.marker, "linestyle": style.linestyle}
    axes.plot(found.steps, found.values, label=style.label, **look)


# Held-out tasks: one evaluation, or two of the same panel -------------------------------------------------------------


def _outcomes(first: PairedReport, second: PairedReport | None = None, order: Sequence[str] = ()) -> Any:
    figure = new_figure(_NARROW, 2.1 + (0.62 if second else 0.45) * len(first.per_type))
    if second is None:
        _draw_outcome(figure.subplots(), first, order)
    else:
        draw_before_after(figure.subplots(), first, second, order)
    return figure


def _draw_outcome(axes: Any, report: PairedReport, order: Sequence[str]) -> None:
    """Success per type in both conditions, with intervals."""
    rows = _rows(report, order)
    for row, (_, counts) in enumerate(rows):
        for style, key, side in _SIDES:
            _dot(axes, row + 0.13 * side, _rate(counts, key), style, filled=True)
    _finish(axes, rows)
    title(axes, "Success on held-out tasks", "bars: 95 % intervals")
    _legend(axes, [(style, False, style["label"]) for style, _, _ in _SIDES])


def draw_before_after(axes: Any, before: PairedReport, after: PairedReport, order: Sequence[str] = ()) -> None:
    """Success per type before and after training, in both conditions, with intervals and an arrow from then to now.

    Args:
        axes: Where to draw.
        before: Evaluation before training.
        after: Evaluation after it.
        order: Task types in the run's order; others follow by name.
    """
    rows, last = _rows(before, order), dict(_rows(after, order))
    for row, (name, first) in enumerate(rows):
        for style, key, side in _SIDES:
            upper, lower = (row + side * 0.19 + offset for offset in (-0.08, 0.08))
            start, end = _rate(first, key), _rate(last[name], key)
            _arrow(axes, (start[0], upper), (end[0], lower), style["color"])
            _dot(axes, upper, start, style, filled=False)
            _dot(axes, lower, end, style, filled=True)
    _finish(axes, rows)
    how = "an arrow leads from before to after; bars: 95 % intervals"
    title(axes, "Success on held-out tasks before and after training", how)
    times = ((True, "before"), (False, "after"))
    _legend(axes, [(s, hollow, f"{s['label']}, {when}") for s, _, _ in _SIDES for hollow, when in times])


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
    axes.plot(list(interval), [y, y], color=colour, linewidth=1.2, alpha=1.0 if filled else 0.5)
    axes.plot(value, y, marker=style["marker"], color=colour, markersize=6, zorder=4, mfc=colour if filled else "white")


def _arrow(axes: Any, start: tuple[float, float], end: tuple[float, float], colour: str) -> None:
    if abs(end[0] - start[0]) < 0.02:
        return  # the points touch; an arrow between them would be all head
    look = {"arrowstyle": "-|>", "color": colour, "linewidth": 1.0, "alpha": 0.55, "shrinkA": 4, "shrinkB": 4}
    axes.annotate("", xy=end, xytext=start, arrowprops=look, zorder=3)


def _finish(axes: Any, rows: Sequence[tuple[str, PairedCounts]]) -> None:
    axes.axhline(len(rows) - 1.5, color="#c9cdd4", linewidth=0.8)
    rates_across(axes, [f"{name}  (n = {counts.n})" for name, counts in rows])


def _legend(axes: Any, entries: Sequence[tuple[Mapping[str, Any], bool, str]]) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], label=label, linestyle="none", **_mark(style, hollow=hollow)) for style, hollow, label in entries
    ]
    axes.figure.legend(handles=handles, loc="outside lower center", ncols=2)


def _mark(style: Mapping[str, Any], *, hollow: bool) -> dict[str, Any]:
    return {"color": style["color"], "marker": style["marker"], "mfc": "white" if hollow else style["color"]}
