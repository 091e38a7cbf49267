"""Panels on the course of a run; each draws one thing onto given axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from skillc_lab.report.records import RunRecords, Series, moving_mean
from skillc_lab.report.style import SOFT, WITH, WITHOUT, TypeStyle, rate_axis, step_axis, title, type_styles
from trainers.stats import wilson
from trainers.tracking.progress import short_type

__all__ = ["draw_active", "draw_gap", "draw_success", "draw_type_success", "type_legend"]

_WINDOW = 10
_REASONS: Mapping[str, str] = {"gap": "its own gap", "budget": "the budget"}


def draw_success(axes: Any, run: RunRecords) -> None:
    """Success over all types: the validation panel with intervals, and training rollouts as a moving mean."""
    panel = run.panel_size()
    for style, key, side in ((WITH, "with", 1), (WITHOUT, "without", -1)):
        _points(axes, run.overall(f"overall_{key}", "validation"), panel, style, 0.003 * run.total_steps * side)
        smooth = moving_mean(run.overall(f"success_{key}"), _WINDOW)
        axes.plot(smooth.steps, smooth.values, color=style["color"], linewidth=1, alpha=0.45, zorder=1)
    title(
        axes,
        "Success with and without the skill",
        f"points: held-back panel of {panel} tasks, 95 % interval; thin: training rollouts, mean of {_WINDOW} steps",
    )
    step_axis(axes, run)
    rate_axis(axes, "success rate")
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="lower right")


def draw_type_success(axes: Any, run: RunRecords, task_type: str) -> None:
    """One type's success on the validation panel, and where it retired."""
    panel = run.panel_size(task_type)
    for style, key, side in ((WITH, "sr_with", 1), (WITHOUT, "sr_without", -1)):
        _points(axes, run.validated(key, task_type), panel, style, 0.005 * run.total_steps * side)
    axes.set_title(f"{short_type(task_type)}  ({panel} tasks)")
    if task_type in run.retirements:
        _shade_retired(axes, run, *run.retirements[task_type])
    step_axis(axes, run)
    rate_axis(axes, "success rate")


def _shade_retired(axes: Any, run: RunRecords, step: int, reason: str) -> None:
    """Greys the steps after a retirement and says within the grey why; the less room, the narrower the words."""
    axes.axvspan(step, run.total_steps * 1.02, color="#f0f1f4", zorder=0)
    room = 1.02 - step / run.total_steps
    why = _REASONS.get(reason, reason)
    axes.annotate(
        f"retired by {why}" if room > 0.45 or room < 0.22 else f"retired by\n{why}",
        (step, 0.0),
        xytext=(4, 1),
        textcoords="offset points",
        ha="left",
        va="bottom",
        rotation=90 if room < 0.22 else 0,
        fontsize=8,
        color=SOFT,
        zorder=1,
    )


def draw_gap(axes: Any, run: RunRecords) -> None:
    """The smoothed gap per type until it retires, then faint, with the threshold below which a type retires."""
    values = [v for kind in run.task_types for v in run.validated("gap_smoothed", kind).values]
    axes.axhline(0.0, color="#c9cdd4", linewidth=0.9, zorder=1)
    for kind, style in type_styles(run.task_types).items():
        series = run.validated("gap_smoothed", kind)
        end = run.retirements.get(kind, (run.total_steps, ""))[0]
        _line(axes, _until(series, end), style, marker=style.marker)
        _line(axes, _from(series, end), style, alpha=0.25)
        if kind in run.retirements:
            _mark_retirement(axes, _until(series, end), style)
    title(axes, "Smoothed gap per type", "success with minus without; a cross: retired, then faint")
    step_axis(axes, run)
    axes.set_ylim(min([-0.12, *(v - 0.05 for v in values)]), max([0.5, *(v + 0.05 for v in values)]))
    axes.set_ylabel("gap (difference of rates)")
    _threshold(axes, run)


def _threshold(axes: Any, run: RunRecords) -> None:
    if run.threshold is None:
        return
    axes.axhline(run.threshold, color=SOFT, linewidth=1.0, linestyle=(0, (5, 3)), zorder=1)
    axes.annotate(
        f"retires below {run.threshold:g}",
        (1.0, run.threshold),
        xycoords=("axes fraction", "data"),
        xytext=(-2, -3),
        textcoords="offset points",
        ha="right",
        va="top",
        fontsize=8,
        color=SOFT,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.8},
    )


def draw_active(axes: Any, run: RunRecords) -> None:
    """Which types are active when, and why they left."""
    styles = type_styles(run.task_types)
    active_ever = {kind for record in run.validations for kind in record.get("active", ())} | set(run.retirements)
    for row, (kind, style) in enumerate(styles.items()):
        if kind not in active_ever:
            continue
        end, reason = run.retirements.get(kind, (run.last_step, ""))
        axes.barh(row, end, height=0.55, color=style.colour, alpha=0.5)
        text = f"step {end}: {_REASONS.get(reason, reason)}" if reason else "active to the end"
        inside = end > 0.5 * run.total_steps
        place = {"xytext": (-5 if inside else 5, 0), "textcoords": "offset points", "va": "center"}
        axes.annotate(text, (end, row), ha="right" if inside else "left", fontsize=8.5, color="#111418", **place)
    if not active_ever:
        axes.annotate(
            "No training prompt holds a skill.", (0.5, 0.5), xycoords="axes fraction", ha="center", color=SOFT
        )
    budget = f"budget K(t) = {', '.join(map(str, run.capacity))} in equal stages" if run.capacity else "no budget"
    title(axes, "Types that still have their skill", f"from the start to retirement; {budget}")
    axes.set_yticks(range(len(styles)), [style.label for style in styles.values()])
    axes.set_ylim(len(styles) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    step_axis(axes, run)


def type_legend(figure: Any, task_types: Sequence[str]) -> None:
    """One legend of the types for a whole figure."""
    from matplotlib.lines import Line2D

    styles = type_styles(task_types).values()
    handles = [Line2D([], [], color=s.colour, marker=s.marker, linestyle=s.linestyle, label=s.label) for s in styles]
    figure.legend(handles=handles, loc="outside lower center", ncols=min(len(handles), 8))


def _points(axes: Any, series: Series, n: int, style: Mapping[str, Any], apart: float) -> None:
    """Points with intervals; the conditions stand a little apart so that neither hides the other."""
    if not series.steps:
        return
    look = {"markersize": 4.5, "linewidth": 1.6, "capsize": 2, "elinewidth": 0.9, **style}
    intervals = [wilson(round(v * n), n) for v in series.values] if n else []
    below = [max(0.0, v - i.low) for v, i in zip(series.values, intervals, strict=False)]
    above = [max(0.0, i.high - v) for v, i in zip(series.values, intervals, strict=False)]
    axes.errorbar(
        [step + apart for step in series.steps], series.values, yerr=[below, above] if n else None, zorder=3, **look
    )


def _line(axes: Any, series: Series, style: TypeStyle, **look: Any) -> None:
    axes.plot(series.steps, series.values, color=style.colour, linestyle=style.linestyle, **look)


def _mark_retirement(axes: Any, series: Series, style: TypeStyle) -> None:
    if series.steps:
        axes.plot(series.steps[-1], series.values[-1], marker="x", color=style.colour, markersize=9, mew=2.2, zorder=5)


def _until(series: Series, step: int) -> Series:
    return series.where([s <= step for s in series.steps])


def _from(series: Series, step: int) -> Series:
    return series.where([s >= step for s in series.steps])
