"""Plots on the course of a run; each draws one thing onto given axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from skillc_lab.report.records import RunRecords, Series, moving_mean
from skillc_lab.report.style import SOFT, WITH, WITHOUT, TypeStyle, rate_axis, step_axis, title, type_styles
from trainers.stats import wilson
from trainers.tracking import short_type

__all__ = [
    "draw_active",
    "draw_advantages",
    "draw_cuts",
    "draw_failed_rewarded",
    "draw_fraction",
    "draw_gap",
    "draw_gate",
    "draw_lengths",
    "draw_success",
    "draw_type_success",
    "quiet_diagnostics",
    "type_legend",
]

_WINDOW = 10
_STRIP = 0.78
"""Height of a strip's scale from 0 to 1, of the strip's 1."""
_REASONS: Mapping[str, str] = {"gap": "its own gap", "budget": "the budget"}
_ARMS = ((WITH, "with", 1), (WITHOUT, "without", -1))
_OUTCOMES: Mapping[str, tuple[Mapping[str, Any], str, str]] = {
    "with_success": (WITH, "-", "with, solved"),
    "with_failure": (WITH, ":", "with, failed"),
    "without_success": (WITHOUT, "-", "without, solved"),
    "without_failure": (WITHOUT, ":", "without, failed"),
}


# Success and the gap --------------------------------------------------------------------------------------------------


def draw_success(axes: Any, run: RunRecords) -> None:
    """Success over all types: the validation panel with intervals, and training rollouts as a moving mean."""
    tasks = run.panel_size()
    for style, key, side in _ARMS:
        _points(axes, run.overall(f"overall_{key}", "validation"), tasks, style, 0.003 * run.total_steps * side)
        _smooth(axes, run.overall(f"success_{key}"), color=style["color"], linewidth=1, alpha=0.45, zorder=1)
    how = f"points: held-back panel of {tasks} tasks, 95 % interval; thin: training rollouts, mean of {_WINDOW} steps"
    title(axes, "Success with and without the skill", how)
    step_axis(axes, run)
    rate_axis(axes, "success rate")
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="lower right")


def draw_type_success(axes: Any, run: RunRecords, task_type: str) -> None:
    """One type's success on the validation panel, and where it retired."""
    tasks = run.panel_size(task_type)
    for style, key, side in _ARMS:
        _points(axes, run.validated(f"sr_{key}", task_type), tasks, style, 0.005 * run.total_steps * side)
    axes.set_title(f"{short_type(task_type)}  ({tasks} tasks)")
    if task_type in run.retirements:
        _shade_retired(axes, run, *run.retirements[task_type])
    step_axis(axes, run)
    rate_axis(axes, "success rate")


def _points(axes: Any, series: Series, n: int, style: Mapping[str, Any], apart: float) -> None:
    """Points with intervals; the conditions stand a little apart so that neither hides the other."""
    if not series.steps:
        return
    look = {"markersize": 4.5, "linewidth": 1.6, "capsize": 2, "elinewidth": 0.9, **style}
    intervals = [wilson(round(v * n), n) for v in series.values] if n else []
    below = [max(0.0, v - i.low) for v, i in zip(series.values, intervals, strict=False)]
    above = [max(0.0, i.high - v) for v, i in zip(series.values, intervals, strict=False)]
    steps = [step + apart for step in series.steps]
    axes.errorbar(steps, series.values, yerr=[below, above] if n else None, zorder=3, **look)


def _shade_retired(axes: Any, run: RunRecords, step: int, reason: str) -> None:
    """Greys the steps after a retirement and says within the grey why; the less room, the narrower the text."""
    axes.axvspan(step, run.total_steps * 1.02, color="#f0f1f4", zorder=0)
    room = 1.02 - step / run.total_steps
    upright, why = room < 0.22, _REASONS.get(reason, reason)
    text = f"retired by {why}" if room > 0.45 or upright else f"retired by\n{why}"
    place = {"xytext": (4, 1), "textcoords": "offset points", "ha": "left", "va": "bottom"}
    axes.annotate(text, (step, 0.0), rotation=90 if upright else 0, fontsize=8, color=SOFT, zorder=1, **place)


def draw_gap(axes: Any, run: RunRecords) -> None:
    """The smoothed gap per type until it retires, then faint, with the threshold below which a type retires."""
    values = [v for kind in run.task_types for v in run.validated("gap_smoothed", kind).values]
    axes.axhline(0.0, color="#c9cdd4", linewidth=0.9, zorder=1)
    for kind, style in type_styles(run.task_types).items():
        series = run.validated("gap_smoothed", kind)
        end = run.retirements.get(kind, (run.total_steps, ""))[0]
        until, later = (series.where([side * s <= side * end for s in series.steps]) for side in (1, -1))
        look = {"color": style.colour, "linestyle": style.linestyle}
        axes.plot(until.steps, until.values, marker=style.marker, **look)
        axes.plot(later.steps, later.values, alpha=0.25, **look)
        if kind in run.retirements and until.steps:
            axes.plot(
                until.steps[-1], until.values[-1], marker="x", color=style.colour, markersize=9, mew=2.2, zorder=5
            )
    title(axes, "Smoothed gap per type", "success with minus without; a cross: retired, then faint")
    step_axis(axes, run)
    axes.set_ylim(min([-0.12, *(v - 0.05 for v in values)]), max([0.5, *(v + 0.05 for v in values)]))
    axes.set_ylabel("gap (difference of rates)")
    if run.threshold is not None:
        _mark_threshold(axes, run.threshold)


def _mark_threshold(axes: Any, threshold: float) -> None:
    axes.axhline(threshold, color=SOFT, linewidth=1.0, linestyle=(0, (5, 3)), zorder=1)
    place = {"xycoords": ("axes fraction", "data"), "xytext": (-2, -3), "textcoords": "offset points"}
    box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.8}
    look = {"ha": "right", "va": "top", "fontsize": 8, "color": SOFT, "bbox": box}
    axes.annotate(f"retires below {threshold:g}", (1.0, threshold), **place, **look)


# Types over the steps: which are active, and a strip for each, so that no line hides another --------------------------


def draw_active(axes: Any, run: RunRecords) -> None:
    """Which types are active when, and why they left."""
    styles = type_styles(run.task_types)
    active_ever = {kind for record in run.validations for kind in record.get("active", ())} | set(run.retirements)
    for row, (kind, style) in enumerate(styles.items()):
        if kind in active_ever:
            _bar(axes, run, row, kind, style)
    if not active_ever:
        nothing = "No training prompt holds a skill."
        axes.annotate(nothing, (0.5, 0.5), xycoords="axes fraction", ha="center", color=SOFT)
    budget = f"budget K(t) = {', '.join(map(str, run.capacity))} in equal stages" if run.capacity else "no budget"
    title(axes, "Types that still have their skill", f"from the start to retirement; {budget}")
    axes.set_yticks(range(len(styles)), [style.label for style in styles.values()])
    axes.set_ylim(len(styles) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    step_axis(axes, run)


def _bar(axes: Any, run: RunRecords, row: int, kind: str, style: TypeStyle) -> None:
    end, reason = run.retirements.get(kind, (run.last_step, ""))
    axes.barh(row, end, height=0.55, color=style.colour, alpha=0.5)
    text = f"step {end}: {_REASONS.get(reason, reason)}" if reason else "active to the end"
    inside = end > 0.5 * run.total_steps
    place = {"xytext": (-5 if inside else 5, 0), "textcoords": "offset points", "va": "center"}
    axes.annotate(text, (end, row), ha="right" if inside else "left", fontsize=8.5, color="#111418", **place)


def draw_gate(axes: Any, run: RunRecords) -> None:
    """The gate per type while it is active."""
    for row, (kind, style) in enumerate(type_styles(run.task_types).items()):
        end = run.retirements.get(kind, (run.last_step, ""))[0]
        series = run.validated("gate", kind)
        _strip(axes, row, series.where([step < end or step == 0 for step in series.steps]), style, end)
    title(axes, "Gate per type", "0.5: no gap; 1: leans wholly on its skill; ends where the type retires")
    _finish_strips(axes, run)


def draw_fraction(axes: Any, run: RunRecords) -> None:
    """The share of training rollouts with the skill, per type."""
    for row, (kind, style) in enumerate(type_styles(run.task_types).items()):
        _strip(axes, row, run.trained("rollout_fraction_with", kind), style, run.last_step)
    title(axes, "Training rollouts that see the skill", "share of each type's rollouts in the updates that trained it")
    _finish_strips(axes, run)


def _strip(axes: Any, row: int, series: Series, style: TypeStyle, end: int) -> None:
    """Steps of one type's figure, filled down to the strip's own zero line."""
    if not series.steps:
        return
    steps, values = [*series.steps, max(end, series.steps[-1])], [*series.values, series.values[-1]]
    heights = [row + 1 - _STRIP * value for value in values]
    axes.fill_between(steps, heights, row + 1, step="post", color=style.colour, alpha=0.22, linewidth=0)
    axes.plot(steps, heights, color=style.colour, drawstyle="steps-post", linewidth=1.5)


def _finish_strips(axes: Any, run: RunRecords) -> None:
    styles = list(type_styles(run.task_types).values())
    place = {"xycoords": ("axes fraction", "data"), "xytext": (3, 0), "textcoords": "offset points", "va": "center"}
    for height, mark in ((row + 1 - _STRIP * mark, mark) for row in range(len(styles)) for mark in (0.0, 0.5, 1.0)):
        axes.axhline(height, color="#eceef1" if mark else "#d5d8de", linewidth=0.7, zorder=0)
        axes.annotate(f"{mark:g}", (1.0, height), fontsize=6.5, color=SOFT, **place)
    axes.set_yticks([row + 1 - _STRIP / 2 for row in range(len(styles))], [style.label for style in styles])
    axes.set_ylim(len(styles) + 0.08, 0.0)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    step_axis(axes, run)


def type_legend(figure: Any, task_types: Sequence[str]) -> None:
    """One legend of the types for a whole figure."""
    from matplotlib.lines import Line2D

    styles = type_styles(task_types).values()
    handles = [Line2D([], [], color=s.colour, marker=s.marker, linestyle=s.linestyle, label=s.label) for s in styles]
    figure.legend(handles=handles, loc="outside lower center", ncols=min(len(handles), 8))


# What the advantages did: whom they rewarded, how long episodes were, and what cut them -------------------------------


def draw_advantages(axes: Any, run: RunRecords) -> None:
    """Mean advantage by condition and outcome."""
    axes.axhline(0.0, color="#9aa1ac", linewidth=0.9)
    for key, (style, dashes, label) in _OUTCOMES.items():
        _smooth(axes, run.trained("advantage_mean", key), color=style["color"], linestyle=dashes, label=label)
    title(axes, "Mean advantage", f"by condition and outcome; mean of {_WINDOW} steps")
    axes.set_ylabel("advantage")
    _finish(axes, run)


def draw_lengths(axes: Any, run: RunRecords) -> None:
    """Length of training episodes by condition."""
    drawn = [_smooth(axes, run.overall(f"episode_length_{key}"), **_line(style)) for style, key, _ in _ARMS]
    title(axes, "Length of training episodes", f"mean of {_WINDOW} training steps")
    axes.set_ylabel("environment steps")
    axes.set_ylim(0, 1.1 * max([1.0, *(value for values in drawn for value in values)]))
    _finish(axes, run)


def draw_failed_rewarded(axes: Any, run: RunRecords) -> None:
    """How many failed rollouts are reinforced nevertheless."""
    _smooth(axes, run.overall("failed_with_positive_advantage"), **_line(WITHOUT))
    title(axes, "Failed, yet reinforced", f"share of failed rollouts; mean of {_WINDOW} steps")
    _finish_shares(axes, run, ["failed_with_positive_advantage"])


def draw_cuts(axes: Any, run: RunRecords) -> None:
    """Which share of the training episodes the context cut, by condition."""
    for style, key, _ in _ARMS:
        _smooth(axes, run.overall(f"cut_by_context_{key}"), **_line(style))
    title(axes, "Cut by the context's end", f"share of training episodes; mean of {_WINDOW} steps")
    _finish_shares(axes, run, [f"cut_by_context_{key}" for _, key, _ in _ARMS])
    axes.legend(loc="best", handlelength=1.8)


def quiet_diagnostics(run: RunRecords) -> dict[str, str]:
    """What needs no plot, by name: shares that were 0 in every update, or were not recorded; each as a sentence."""
    measured = {
        "failed_rewarded": ("a failed rollout was reinforced", ["failed_with_positive_advantage"]),
        "cuts": ("the context cut a training episode", [f"cut_by_context_{key}" for _, key, _ in _ARMS]),
    }
    found = {name: [v for key in keys for v in run.overall(key).values] for name, (_, keys) in measured.items()}
    return {
        name: f"In no update {what}." if found[name] else f"It was not recorded whether {what}."
        for name, (what, _) in measured.items()
        if not any(found[name])
    }


def _line(style: Mapping[str, Any]) -> dict[str, Any]:
    return {name: style[name] for name in ("color", "linestyle", "label")}


def _smooth(axes: Any, series: Series, **look: Any) -> list[float]:
    """Draws the mean over the last steps, where anything was measured; returns its heights."""
    smooth = moving_mean(series, _WINDOW)
    if smooth.steps:
        axes.plot(smooth.steps, smooth.values, **look)
    return smooth.values


def _finish_shares(axes: Any, run: RunRecords, keys: Sequence[str]) -> None:
    """A scale that fits the shares."""
    top = max((value for key in keys for value in run.overall(key).values), default=1.0)
    axes.set_ylim(0.0, min(1.03, 1.15 * top))
    axes.set_ylabel("share")
    step_axis(axes, run)


def _finish(axes: Any, run: RunRecords) -> None:
    step_axis(axes, run)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="best", ncols=2, handlelength=1.8)
