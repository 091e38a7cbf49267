"""The PNG figures of a run, of evaluations and of compared runs, each as wide as a telephone shows legibly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from skillc_gym.files import replace_file
from skillc_lab.report.plots import draw_type, plots_of, type_legend, validated_at
from skillc_lab.report.records import ComparedRun, RunRecords
from skillc_lab.report.style import (
    COLUMN,
    WITH,
    WITHOUT,
    LineStyle,
    figure_style,
    method_styles,
    new_figure,
    rate_axis,
    rates_across,
    step_axis,
    title,
    type_styles,
)
from trainers.evaluation import PairedCounts, PairedReport, compare_reports
from trainers.stats import Interval, wilson
from trainers.tracking import short_type

_SIDES = ((WITH, "with", -1), (WITHOUT, "without", 1))


def save_figures(
    run: RunRecords, out: Path, *, before: PairedReport | None = None, after: PairedReport | None = None
) -> dict[str, Path]:
    """Draws everything the records hold that means something for the run's method; the PNG files by name.

    Those of :func:`~skillc_lab.report.plots.plots_of`, success_by_type, the first few in one (overview) and, with
    evaluations on one panel before and after training, before_after.
    """
    with figure_style():
        figures: dict[str, Any] = {"overview": _overview(run)}
        for name, (draw, height) in plots_of(run).items():
            figures[name] = new_figure(COLUMN, height)
            draw(figures[name].subplots(), run)
        if "gap" in figures:
            type_legend(figures["gap"], run.task_types, 3)
        figures["success_by_type"] = _by_type(run)
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
    """Draws success by updates: a plot per condition, a line per run, 95 % intervals over the tasks as bands."""
    styles = method_styles([each.name for each in runs])
    with figure_style():
        figure = new_figure(COLUMN, 6.4)
        for axes, arm in zip(figure.subplots(2, 1), ("without", "with"), strict=True):
            ends = [_draw_line(axes, each.run, arm, styles[each.name]) for each in runs]
            said = [f"{styles[each.name].label} {end}" for each, end in zip(runs, ends, strict=True) if end]
            how = f"validation panel of {runs[0].run.panel_size()} tasks; bands: 95 % over tasks"
            title(axes, f"{arm.capitalize()} the skill: {', '.join(said)}", how)
            step_axis(axes, max(each.run.total_steps for each in runs))
            rate_axis(axes)
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2)
        return _save({path.stem: figure}, path.parent)[path.stem]


def _draw_line(axes: Any, run: RunRecords, arm: str, style: LineStyle) -> str:
    """Draws a run's validations; returns the last in per cent."""
    found, tasks = run.overall(f"overall_{arm}", "validation"), run.panel_size()
    if tasks:
        bounds = [wilson(rate * tasks, tasks) for rate in found.values]
        low, high = [each.low for each in bounds], [each.high for each in bounds]
        axes.fill_between(found.steps, low, high, color=style.colour, alpha=0.14, linewidth=0)
    look = {"color": style.colour, "marker": style.marker, "linestyle": style.linestyle}
    axes.plot(found.steps, found.values, label=style.label, **look)
    return f"{100 * found.values[-1]:.0f} %" if found.values else ""


def _save(figures: Mapping[str, Any], out: Path) -> dict[str, Path]:
    drawn = {name: out / f"{name}.png" for name in figures}
    for name, figure in figures.items():
        picture = BytesIO()
        figure.savefig(picture, format="png")
        replace_file(drawn[name], [picture.getvalue()])  # a link in its place is replaced, not followed
    return drawn


def _overview(run: RunRecords) -> Any:
    """A run in one picture: success above, and what else steers the method two by two below."""
    found = {name: plot for name, plot in plots_of(run).items() if name in _AT_A_GLANCE}
    top, *others = found
    pairs = [others[i : i + 2] for i in range(0, len(others), 2)]
    layout = [[top, top], *(pair if len(pair) == 2 else pair * 2 for pair in pairs)]
    heights = [max(found[name][1] for name in row) for row in layout]
    figure = new_figure(2 * COLUMN, sum(heights) + 0.4)
    for name, axes in figure.subplot_mosaic(layout, height_ratios=heights).items():
        found[name][0](axes, run)
    type_legend(figure, run.task_types)
    return figure


_AT_A_GLANCE = ("success", "gap", "active", "gate", "rollout_fraction")


def _by_type(run: RunRecords) -> Any:
    styles = type_styles(run.task_types)
    figure = new_figure(COLUMN, 1.4 + 1.35 * max(1, len(styles)))
    axes = figure.subplots(max(1, len(styles)), 1, squeeze=False, sharex=True)[:, 0]
    for each, (kind, style) in zip(axes, styles.items(), strict=False):
        draw_type(each, run, kind, style)
    ends = [found.values[-1] for kind in styles if (found := run.validated("sr_without", kind)).values]
    half = f"{sum(end >= 0.5 for end in ends)} of {len(ends)} task types succeed half the time"
    what = f"{half}\nwithout the skill{validated_at(run)}"
    figure.suptitle(what, x=0.01, ha="left", fontsize=11, fontweight="bold")
    sizes = sorted({run.panel_size(kind) for kind in styles})
    how = f"success in % on {' to '.join(map(str, sizes[:1] + sizes[1:][-1:]))} tasks of the panel; 95 %"
    axes[-1].set_xlabel("training step\n" + how + "; grey: retired" * bool(run.retirements))
    if styles:
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure


# Held-out tasks: one evaluation, or two of the same panel -------------------------------------------------------------


def _outcomes(first: PairedReport, second: PairedReport | None = None, order: Sequence[str] = ()) -> Any:
    figure = new_figure(COLUMN, 2.4 + (0.55 if second else 0.4) * len(first.per_type))
    if second is None:
        _draw_outcome(figure.subplots(), first, order)
    else:
        draw_before_after(figure.subplots(), first, second, order)
    return figure


def _draw_outcome(axes: Any, report: PairedReport, order: Sequence[str]) -> None:
    """Success per type in both conditions, with intervals."""
    rows, last = _rows(report, order), report.overall
    for row, (_, counts) in enumerate(rows):
        for style, key, side in _SIDES:
            _dot(axes, row + 0.13 * side, _rate(counts, key), style, filled=True)
    what = f"With the skill {100 * last.sr_with:.0f} %, without {100 * last.sr_without:.0f} %"
    _finish(axes, rows, what, "held-out tasks; bars: 95 % intervals")
    _legend(axes, [(style, False, style["label"]) for style, _, _ in _SIDES])


def draw_before_after(axes: Any, before: PairedReport, after: PairedReport, order: Sequence[str] = ()) -> None:
    """Success per type before and after, in both conditions, with intervals and arrows; types in the run's order."""
    rows, last = _rows(before, order), dict(_rows(after, order))
    for row, (name, first) in enumerate(rows):
        for style, key, side in _SIDES:
            upper, lower = (row + side * 0.19 + offset for offset in (-0.08, 0.08))
            start, end = _rate(first, key), _rate(last[name], key)
            _arrow(axes, (start[0], upper), (end[0], lower), style["color"])
            _dot(axes, upper, start, style, filled=False)
            _dot(axes, lower, end, style, filled=True)
    moved = [100 * compare_reports(before, after, skill=skill)["overall"].change for skill in (False, True)]
    how = "held-out tasks; an arrow leads from before to after; bars: 95 % intervals"
    _finish(axes, rows, "Without the skill {:+.0f} points, with it {:+.0f}".format(*moved), how)
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


def _finish(axes: Any, rows: Sequence[tuple[str, PairedCounts]], what: str, how: str) -> None:
    axes.axhline(len(rows) - 1.5, color="#c9cdd4", linewidth=0.8)
    rates_across(axes, [f"{name}\n(n = {counts.n})" for name, counts in rows])
    title(axes, what, how)


def _legend(axes: Any, entries: Sequence[tuple[Mapping[str, Any], bool, str]]) -> None:
    from matplotlib.lines import Line2D

    looks = [
        {
            "label": label,
            "color": style["color"],
            "marker": style["marker"],
            "mfc": "white" if hollow else style["color"],
        }
        for style, hollow, label in entries
    ]
    handles = [Line2D([], [], linestyle="none", **look) for look in looks]
    axes.figure.legend(handles=handles, loc="outside lower center", ncols=2)
