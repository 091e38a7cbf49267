"""Small multiples that share one axis of steps: a strip per task type, so that no line hides another."""

from __future__ import annotations

from typing import Any

from skillc_lab.report.records import RunRecords, Series
from skillc_lab.report.style import SOFT, TypeStyle, step_axis, title, type_styles

__all__ = ["draw_fraction", "draw_gate"]

_HEIGHT = 0.78
"""Height of a strip's scale from 0 to 1, of the strip's 1."""


def draw_gate(axes: Any, run: RunRecords) -> None:
    """The gate per type while it is active."""
    for row, (kind, style) in enumerate(type_styles(run.task_types).items()):
        end = run.retirements.get(kind, (run.last_step, ""))[0]
        series = run.validated("gate", kind)
        _strip(axes, row, series.where([step < end or step == 0 for step in series.steps]), style, end)
    title(axes, "Gate per type", "0.5: no gap; 1: leans wholly on its skill; ends where the type retires")
    _finish(axes, run, (0.0, 0.5, 1.0))


def draw_fraction(axes: Any, run: RunRecords) -> None:
    """The share of training rollouts with the skill, per type."""
    for row, (kind, style) in enumerate(type_styles(run.task_types).items()):
        _strip(axes, row, run.trained("rollout_fraction_with", kind), style, run.last_step)
    title(axes, "Training rollouts that see the skill", "share of each type's rollouts in the updates that trained it")
    _finish(axes, run, (0.0, 0.5, 1.0))


def _strip(axes: Any, row: int, series: Series, style: TypeStyle, end: int) -> None:
    """Steps of one type's figure, filled down to the strip's own zero line."""
    if not series.steps:
        return
    steps, values = [*series.steps, max(end, series.steps[-1])], [*series.values, series.values[-1]]
    heights = [row + 1 - _HEIGHT * value for value in values]
    axes.fill_between(steps, heights, row + 1, step="post", color=style.colour, alpha=0.22, linewidth=0)
    axes.plot(steps, heights, color=style.colour, drawstyle="steps-post", linewidth=1.5)


def _finish(axes: Any, run: RunRecords, marks: tuple[float, ...]) -> None:
    styles = list(type_styles(run.task_types).values())
    place = {"xycoords": ("axes fraction", "data"), "xytext": (3, 0), "textcoords": "offset points", "va": "center"}
    for height, mark in ((row + 1 - _HEIGHT * mark, mark) for row in range(len(styles)) for mark in marks):
        axes.axhline(height, color="#eceef1" if mark else "#d5d8de", linewidth=0.7, zorder=0)
        axes.annotate(f"{mark:g}", (1.0, height), fontsize=6.5, color=SOFT, **place)
    axes.set_yticks([row + 1 - _HEIGHT / 2 for row in range(len(styles))], [style.label for style in styles])
    axes.set_ylim(len(styles) + 0.08, 0.0)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    step_axis(axes, run)
