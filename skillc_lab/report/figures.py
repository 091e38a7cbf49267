"""The PNG figures of a run, of evaluations and of compared runs, each as wide as a telephone shows legibly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from skillc_gym.envs.registry import short_type
from skillc_lab.report.plots import draw_type, plots_of, type_legend, validated_at
from skillc_lab.report.records import ComparedRun, RunRecords, in_order
from skillc_lab.report.style import (
    COLUMN,
    WITH,
    WITHOUT,
    LineStyle,
    canvas,
    method_styles,
    rate_axis,
    rates_across,
    shared_legend,
    step_axis,
    title,
    type_styles,
)
from trainers.evaluation import PairedCounts, PairedReport, compare_reports
from trainers.stats import Interval, wilson

_SIDES = ((WITH, "with", -0.19), (WITHOUT, "without", 0.19))
_Rate = tuple[float, Interval]


def save_figures(
    run: RunRecords, out: Path, *, before: PairedReport | None, after: PairedReport | None
) -> dict[str, Path]:
    """Draws everything the records hold that means something for the run's method; the PNG files by name.

    Those of :func:`~skillc_lab.report.plots.plots_of`, success_by_type, the first few in one (overview) and, with
    evaluations on one panel before and after training, before_after.
    """
    plots = plots_of(run)
    drawn = {name: out / f"{name}.png" for name in ("overview", *plots, "success_by_type")}
    _draw_overview(run, drawn["overview"])
    for name, (draw, height) in plots.items():
        with canvas(drawn[name], COLUMN, height) as figure:
            draw(figure.subplots(), run)
            if name == "gap":
                type_legend(figure, run.task_types, 3)
    _draw_types(run, drawn["success_by_type"])
    if before is not None and after is not None:
        drawn |= save_outcome_figure(after, out, before=before, order=run.task_types)
    return drawn


def save_versus(runs: Sequence[ComparedRun], path: Path) -> Path:
    """Draws success by updates: a plot per condition, a line per run, 95 % intervals over the tasks as bands."""
    styles = method_styles([each.name for each in runs])
    with canvas(path, COLUMN, 6.4) as figure:
        for axes, arm in zip(figure.subplots(2, 1), ("without", "with"), strict=True):
            ends = [_draw_line(axes, each.run, arm, styles[each.name]) for each in runs]
            said = [f"{styles[each.name].label} {end}" for each, end in zip(runs, ends, strict=True) if end]
            sizes = " and ".join(map(str, sorted({each.run.panel_size() for each in runs})))
            how = f"validation panel of {sizes} tasks; bands: 95 % over tasks"
            title(axes, f"{arm.capitalize()} the skill: {', '.join(said)}", how)
            step_axis(axes, max(each.run.total_steps for each in runs))
            rate_axis(axes)
        shared_legend(figure, 2)
    return path


def _draw_line(axes: Any, run: RunRecords, arm: str, style: LineStyle) -> str:
    """Draws a run's validations; returns the last in per cent."""
    found, tasks = run.overall(f"overall_{arm}", "validation"), run.panel_size()
    if tasks:
        bounds = [wilson(rate * tasks, tasks) for rate in found.values]
        low, high = [each.low for each in bounds], [each.high for each in bounds]
        axes.fill_between(found.steps, low, high, color=style.colour, alpha=0.14, linewidth=0)
    axes.plot(found.steps, found.values, label=style.label, **style.look)
    return f"{100 * found.values[-1]:.0f} %" if found.values else ""


def _draw_overview(run: RunRecords, path: Path) -> None:
    """A run in one picture: success above, and what else steers the method two by two below."""
    found = {name: plot for name, plot in plots_of(run).items() if name in _AT_A_GLANCE}
    top, *others = found
    pairs = [others[i : i + 2] for i in range(0, len(others), 2)]
    layout = [[top, top], *(pair if len(pair) == 2 else pair * 2 for pair in pairs)]
    heights = [max(found[name][1] for name in row) for row in layout]
    with canvas(path, 2 * COLUMN, sum(heights) + 0.4) as figure:
        for name, axes in figure.subplot_mosaic(layout, height_ratios=heights).items():
            found[name][0](axes, run)
        type_legend(figure, run.task_types)


_AT_A_GLANCE = ("success", "gap", "active", "gate", "rollout_fraction")


def _draw_types(run: RunRecords, path: Path) -> None:
    styles = type_styles(run.task_types)
    ends = [found.values[-1] for kind in styles if (found := run.validated("sr_without", kind)).values]
    half = f"{sum(end >= 0.5 for end in ends)} of {len(ends)} task types succeed half the time"
    rows = max(1, len(styles))
    with canvas(path, COLUMN, 1.4 + 1.35 * rows, f"{half} without the skill{validated_at(run)}") as figure:
        axes = figure.subplots(rows, 1, squeeze=False, sharex=True)[:, 0]
        for each, (kind, style) in zip(axes, styles.items(), strict=False):
            draw_type(each, run, kind, style)
        sizes = sorted({run.panel_size(kind) for kind in styles})
        how = f"success in % on {' to '.join(map(str, sizes[:1] + sizes[1:][-1:]))} tasks of the panel; 95 %"
        axes[-1].set_xlabel("training step\n" + how + "\ngrey: retired" * bool(run.retirements))
        shared_legend(figure, 2)


# Held-out tasks: one evaluation, or two of the same panel -------------------------------------------------------------


def save_outcome_figure(
    report: PairedReport, out: Path, *, before: PairedReport | None, order: Sequence[str] = ()
) -> dict[str, Path]:
    """Draws evaluations, types in the order given: ``before_after`` if there are two, else ``outcome``."""
    name = "outcome" if before is None else "before_after"
    rows, earlier = _rows(report, order), dict(_rows(before, order)) if before is not None else {}
    with canvas(out / f"{name}.png", COLUMN, 2.4 + (0.55 if before else 0.4) * len(report.per_type)) as figure:
        axes = figure.subplots()
        for row, (kind, counts) in enumerate(rows):
            for style, arm, side in _SIDES:
                start = _rate(earlier[kind], arm) if earlier else None
                _draw_arm(axes, row + side, start, _rate(counts, arm), style)
        axes.axhline(len(rows) - 1.5, color="#c9cdd4", linewidth=0.8)
        rates_across(axes, [f"{kind}\n(n = {counts.n})" for kind, counts in rows])
        title(axes, *_outcome_words(report, before))
        shared_legend(figure, 2)
    return {name: out / f"{name}.png"}


def _outcome_words(report: PairedReport, before: PairedReport | None) -> tuple[str, str]:
    if before is None:
        last = report.overall
        what = f"With the skill {100 * last.sr_with:.0f} %, without {100 * last.sr_without:.0f} %"
        return what, "held-out tasks; bars: 95 % intervals"
    moved = [100 * compare_reports(before, report, skill=skill)["overall"].change for skill in (False, True)]
    what = "Without the skill {:+.0f} points, with it {:+.0f}".format(*moved)
    return what, "held-out tasks; an arrow leads from before to after; bars: 95 % intervals"


def _draw_arm(axes: Any, y: float, start: _Rate | None, end: _Rate, style: Mapping[str, Any]) -> None:
    """A rate of a type, and what it was before, if that is known."""
    if start is None:
        _dot(axes, y, end, style)
        return
    _arrow(axes, (start[0], y - 0.08), (end[0], y + 0.08), style["color"])
    _dot(axes, y - 0.08, start, {**style, "mfc": "white", "label": f"{style['label']}, before"}, faint=True)
    _dot(axes, y + 0.08, end, {**style, "label": f"{style['label']}, after"})


def _rows(report: PairedReport, order: Sequence[str]) -> list[tuple[str, PairedCounts]]:
    return [*((short_type(kind), report.per_type[kind]) for kind in in_order(report, order)), ("all", report.overall)]


def _rate(counts: PairedCounts, arm: str) -> _Rate:
    return getattr(counts, f"sr_{arm}"), getattr(counts, f"sr_{arm}_interval")


def _dot(axes: Any, y: float, rate: _Rate, style: Mapping[str, Any], *, faint: bool = False) -> None:
    value, interval = rate
    axes.plot(list(interval), [y, y], color=style["color"], linewidth=1.2, alpha=0.5 if faint else 1.0)
    axes.plot(value, y, **{**style, "linestyle": "none", "markersize": 6, "zorder": 4})


def _arrow(axes: Any, start: tuple[float, float], end: tuple[float, float], colour: str) -> None:
    if abs(end[0] - start[0]) < 0.02:
        return  # the points touch; an arrow between them would be all head
    look = {"arrowstyle": "-|>", "color": colour, "linewidth": 1.0, "alpha": 0.55, "shrinkA": 4, "shrinkB": 4}
    axes.annotate("", xy=end, xytext=start, arrowprops=look, zorder=3)
