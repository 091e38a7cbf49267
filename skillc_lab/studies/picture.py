"""The picture of a comparison: success of every method after training, and on the way there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from skillc_lab.report.style import (
    SOFT,
    WITH,
    WITHOUT,
    TypeStyle,
    figure_style,
    new_figure,
    rate_axis,
    title,
    type_styles,
)
from skillc_lab.studies.result import CellResult, CurvePoint, by_env_steps
from skillc_lab.studies.table import MethodRow
from trainers.stats import MeanEstimate

__all__ = ["draw_comparison"]

_NAMED = 5
"""Methods whose curves are drawn in colour beside the baseline's; the others' are grey."""


def draw_comparison(
    rows: Sequence[MethodRow],
    cells: Sequence[CellResult],
    budget: int,
    path: Path,
    *,
    before: CellResult | None = None,
    heading: str = "",
) -> None:
    """Draws outcomes with intervals over seeds beside mean learning curves over tokens and environment steps.

    Args:
        rows: The table's rows, the baseline first.
        cells: All trained cells, of one starting point.
        budget: Generated tokens that the curves run to.
        path: A file whose ending names the format.
        before: The starting point itself.
        heading: What is compared where.

    Raises:
        MissingExtraError: Without matplotlib.
    """
    styles = _styles(rows)
    curves = {row.method: [cell.curve for cell in cells if cell.method == row.method] for row in rows}
    steps = {name: [by_env_steps(curve) for curve in found] for name, found in curves.items()}
    shared = max(1, min(cell.usage.env_steps for cell in cells))
    with figure_style():
        figure = new_figure(12.5, 2.6 + 0.26 * max(len(rows), 6))
        left, middle, right = figure.subplots(1, 3, width_ratios=[1.25, 1, 1])
        _draw_outcomes(left, rows, styles, before)
        _draw_curves(middle, curves, styles, budget)
        _draw_curves(right, steps, styles, shared)
        title(middle, "On the way", "skill-free success, validation panel, mean of seeds")
        title(right, "By environment steps", "as many as every run took")
        middle.set_xlabel("tokens generated (thousands)")
        right.set_xlabel("environment steps (thousands)")
        middle.legend(loc="upper left")
        if heading:
            figure.suptitle(heading, x=0.01, ha="left", fontsize=11.5)
        figure.savefig(path)


def _styles(rows: Sequence[MethodRow]) -> Mapping[str, TypeStyle]:
    """Styles of the methods that are told apart: the baseline and those of the largest areas."""
    ranked = sorted(rows[1:], key=lambda row: -row.curve.area.mean)
    named = [rows[0].method, *(row.method for row in ranked[:_NAMED])]
    found = type_styles(named)
    return {row.method: found[row.method] for row in rows if row.method in found}


def _draw_outcomes(
    axes: Any, rows: Sequence[MethodRow], styles: Mapping[str, TypeStyle], before: CellResult | None
) -> None:
    for place, row in enumerate(rows):
        colour = styles[row.method].colour if row.method in styles else SOFT
        _draw_estimate(axes, place + 0.14, row.with_skill, colour, filled=False)
        _draw_estimate(axes, place - 0.14, row.without, colour, filled=True)
    if before is not None:
        axes.axvline(before.without, color=WITHOUT["color"], linewidth=0.9, linestyle=":")
        axes.axvline(before.with_skill, color=WITH["color"], linewidth=0.9, linestyle=":")
    axes.set_yticks(range(len(rows)), [row.method for row in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlim(-0.02, 1.02)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1.0], ["0", "0.25", "0.5", "0.75", "1"])
    axes.set_xlabel("success rate")
    axes.grid(visible=False, axis="y")
    title(axes, "Held-out tasks after training", "filled: without the skill; hollow: with; bars: 95 %; dotted: before")


def _draw_estimate(axes: Any, y: float, estimate: MeanEstimate, colour: str, *, filled: bool) -> None:
    if estimate.interval is not None:
        ends = [max(0.0, estimate.interval.low), min(1.0, estimate.interval.high)]
        axes.plot(ends, [y, y], color=colour, linewidth=1.3)
    marker, face = ("o", colour) if filled else ("s", "white")
    axes.plot(estimate.mean, y, marker=marker, color=colour, mfc=face, markersize=5, zorder=4)


def _draw_curves(
    axes: Any, curves: Mapping[str, Sequence[Sequence[CurvePoint]]], styles: Mapping[str, TypeStyle], end: int
) -> None:
    grid = np.linspace(0, end, 101)
    told_apart: Callable[[str], bool] = styles.__contains__
    for name in sorted(curves, key=told_apart):
        heights = [np.interp(grid, [p.tokens for p in each], [p.without for p in each]) for each in curves[name]]
        mean = [fmean(at) for at in zip(*heights, strict=True)]
        if name in styles:
            own = styles[name]
            axes.plot(grid / 1000, mean, color=own.colour, linestyle=own.linestyle, label=own.label)
        else:
            axes.plot(grid / 1000, mean, color="#c9cdd4", linewidth=0.9)
    rate_axis(axes, "success rate")
