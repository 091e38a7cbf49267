"""The panels that figures are made of; each draws one thing of a run onto given axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trainers.evaluation.paired_report import PairedCounts, PairedReport
from trainers.evaluation.stats import Interval, wilson
from trainers.report.records import RunRecords, Series, moving_mean
from trainers.report.style import SOFT, WITH, WITHOUT, TypeStyle, rate_axis, step_axis, title, type_styles
from trainers.tracking.progress import short_type

__all__ = [
    "draw_active",
    "draw_before_after",
    "draw_fraction",
    "draw_gap",
    "draw_gate",
    "draw_success",
    "draw_type_success",
    "type_legend",
]

_WINDOW = 10


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
    axes.legend(loc="lower right")


def draw_type_success(axes: Any, run: RunRecords, task_type: str) -> None:
    """One type's success on the validation panel, and where it retired."""
    panel = run.panel_size(task_type)
    for style, key, side in ((WITH, "sr_with", 1), (WITHOUT, "sr_without", -1)):
        _points(axes, run.validated(key, task_type), panel, style, 0.005 * run.total_steps * side)
    axes.set_title(f"{short_type(task_type)}  ({panel} tasks)")
    if task_type in run.retirements:
        step, reason = run.retirements[task_type]
        axes.axvspan(step, run.total_steps * 1.02, color="#f0f1f4", zorder=0)
        left = step < run.total_steps / 2
        axes.annotate(
            f"retired by {_REASONS[reason]}",
            (step, 0.0),
            xytext=(4 if left else -4, 1),
            textcoords="offset points",
            ha="left" if left else "right",
            fontsize=7.5,
            color=SOFT,
        )
    step_axis(axes, run)
    rate_axis(axes, "success rate")


def draw_gap(axes: Any, run: RunRecords) -> None:
    """The smoothed gap per type until it retires, then faint."""
    values = [v for kind in run.task_types for v in run.validated("gap_smoothed", kind).values]
    threshold = run.preset.tau_retire if run.preset else 0.0
    axes.axhline(threshold, color=SOFT, linewidth=0.9, zorder=1)
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


def draw_gate(axes: Any, run: RunRecords) -> None:
    """The gate per type while it is active."""
    for kind, style in type_styles(run.task_types).items():
        series = run.validated("gate", kind)
        end = run.retirements.get(kind, (run.total_steps, ""))[0]
        _stairs(axes, _until(series, end - 1), style, end)
    title(axes, "Gate per type", "1: leans wholly on its skill; 0.5: no gap; a line ends where its type retires")
    step_axis(axes, run)
    rate_axis(axes, "gate")


def draw_fraction(axes: Any, run: RunRecords) -> None:
    """The share of training rollouts with the skill, per type."""
    for kind, style in type_styles(run.task_types).items():
        _stairs(axes, run.trained("rollout_fraction_with", kind), style, None)
    title(axes, "Training rollouts that see the skill", "share of each type's rollouts in the updates that trained it")
    step_axis(axes, run)
    rate_axis(axes, "share of rollouts")


def draw_active(axes: Any, run: RunRecords) -> None:
    """Which types are active when, and why they left."""
    styles = type_styles(run.task_types)
    active_ever = {kind for record in run.validations for kind in record.get("active", ())} | set(run.retirements)
    for row, (kind, style) in enumerate(styles.items()):
        if kind not in active_ever:
            continue
        end, reason = run.retirements.get(kind, (run.last_step, ""))
        axes.barh(row, end, height=0.55, color=style.colour, alpha=0.5)
        text = f"step {end}: {_REASONS[reason]}" if reason else "active to the end"
        inside = end > 0.6 * run.total_steps
        place = {"xytext": (-5 if inside else 5, 0), "textcoords": "offset points", "va": "center"}
        axes.annotate(text, (end, row), ha="right" if inside else "left", fontsize=8, color="#111418", **place)
    if not active_ever:
        axes.annotate(
            "No training prompt holds a skill.", (0.5, 0.5), xycoords="axes fraction", ha="center", color=SOFT
        )
    budget = f"; budget K(t) = {', '.join(map(str, run.capacity))} in equal stages" if run.capacity else ""
    title(axes, "Types that still have their skill", f"from the start to retirement{budget}")
    axes.set_yticks(range(len(styles)), [style.label for style in styles.values()])
    axes.set_ylim(len(styles) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    step_axis(axes, run)


def draw_before_after(axes: Any, before: PairedReport, after: PairedReport, order: Sequence[str] = ()) -> None:
    """Success per type before and after training, in both conditions, with intervals.

    Args:
        axes: Where to draw.
        before: Evaluation before training.
        after: Evaluation after it.
        order: Task types in the run's order; others follow by name.
    """
    names = [*(kind for kind in order if kind in before.per_type), *(k for k in before.per_type if k not in order)]
    rows = [(short_type(kind), before.per_type[kind], after.per_type[kind]) for kind in names]
    rows.append(("all", before.overall, after.overall))
    for row, (_, first, second) in enumerate(rows):
        for style, key, side in ((WITH, "with", -1), (WITHOUT, "without", 1)):
            for counts, filled, offset in ((first, False, 0.19 - 0.08 * side), (second, True, 0.19 + 0.08 * side)):
                _dot(axes, row + side * offset, _rate(counts, key), style, filled=filled)
    axes.axhline(len(rows) - 1.5, color="#c9cdd4", linewidth=0.8)
    axes.set_yticks(range(len(rows)), [f"{name}  (n = {first.n})" for name, first, _ in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlim(-0.02, 1.02)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1.0], ["0", "0.25", "0.5", "0.75", "1"])
    axes.set_xlabel("success rate")
    axes.grid(visible=False, axis="y")
    title(
        axes,
        "Success on held-out tasks before and after training",
        "each task once per condition; bars: 95 % intervals",
    )
    handles = [
        axes.plot([], [], color=s["color"], marker=s["marker"], mfc=fill or s["color"], linestyle="none", label=label)[
            0
        ]
        for s in (WITH, WITHOUT)
        for fill, label in (("white", f"{s['label']}, before"), (None, f"{s['label']}, after"))
    ]
    axes.figure.legend(handles=handles, loc="outside lower center", ncols=2)


def type_legend(figure: Any, task_types: Sequence[str]) -> None:
    """One legend of the types for a whole figure."""
    from matplotlib.lines import Line2D

    styles = type_styles(task_types).values()
    handles = [Line2D([], [], color=s.colour, marker=s.marker, linestyle=s.linestyle, label=s.label) for s in styles]
    figure.legend(handles=handles, loc="outside lower center", ncols=min(len(handles), 8))


_REASONS: Mapping[str, str] = {"gap": "its own gap", "budget": "the budget"}


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


def _rate(counts: PairedCounts, key: str) -> tuple[float, Interval]:
    if key == "with":
        return counts.sr_with, counts.sr_with_interval
    return counts.sr_without, counts.sr_without_interval


def _dot(axes: Any, y: float, rate: tuple[float, Interval], style: Mapping[str, Any], *, filled: bool) -> None:
    value, interval = rate
    colour = style["color"]
    axes.plot([interval.low, interval.high], [y, y], color=colour, linewidth=1.2, alpha=1.0 if filled else 0.5)
    axes.plot(value, y, marker=style["marker"], color=colour, markersize=6, zorder=4, mfc=colour if filled else "white")


def _line(axes: Any, series: Series, style: TypeStyle, **look: Any) -> None:
    axes.plot(series.steps, series.values, color=style.colour, linestyle=style.linestyle, **look)


def _stairs(axes: Any, series: Series, style: TypeStyle, end: int | None) -> None:
    steps, values = series.steps, series.values
    if end is not None and steps and end > steps[-1]:
        steps, values = [*steps, end], [*values, values[-1]]
    axes.plot(steps, values, color=style.colour, linestyle=style.linestyle, drawstyle="steps-post", alpha=0.9)


def _mark_retirement(axes: Any, series: Series, style: TypeStyle) -> None:
    if series.steps:
        axes.plot(series.steps[-1], series.values[-1], marker="x", color=style.colour, markersize=9, mew=2.2, zorder=5)


def _until(series: Series, step: int) -> Series:
    return _where(series, [s <= step for s in series.steps])


def _from(series: Series, step: int) -> Series:
    return _where(series, [s >= step for s in series.steps])


def _where(series: Series, keep: Sequence[bool]) -> Series:
    return Series(
        [s for s, k in zip(series.steps, keep, strict=True) if k],
        [v for v, k in zip(series.values, keep, strict=True) if k],
    )
