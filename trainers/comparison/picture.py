"""The picture of a comparison: skill-free success after training, and on the way there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from skillc_gym.errors import missing_extra
from trainers.comparison.result import CellResult
from trainers.comparison.table import MethodRow

__all__ = ["draw_comparison"]


def draw_comparison(rows: Sequence[MethodRow], cells: Sequence[CellResult], budget: int, path: Path) -> None:
    """Draws intervals over seeds beside mean learning curves against generated tokens.

    Args:
        rows: The table's rows.
        cells: All cells.
        budget: Generated tokens that the curves run to.
        path: A file whose ending names the format.

    Raises:
        MissingExtraError: Without matplotlib.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise missing_extra("matplotlib", "train") from error
    figure = Figure(figsize=(11, 1.6 + 0.34 * len(rows)), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.3])
    colours = [f"C{i % 10}" for i in range(len(rows))]
    _draw_rates(left, rows, colours)
    _draw_curves(right, rows, cells, budget, colours)
    figure.savefig(path, dpi=140)


def _draw_rates(axes: Any, rows: Sequence[MethodRow], colours: Sequence[str]) -> None:
    for place, (row, colour) in enumerate(zip(rows, colours, strict=True)):
        own = row.without.interval
        if own is not None:
            axes.plot([100 * max(0.0, own.low), 100 * min(1.0, own.high)], [place, place], color=colour, linewidth=2)
        axes.plot([100 * row.without.mean], [place], "o", color=colour)
    axes.set_yticks(range(len(rows)), [row.method for row in rows])
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.set_xlabel("success without the skill after training (%), 95 % over seeds")
    axes.grid(axis="x", alpha=0.3)


def _draw_curves(
    axes: Any, rows: Sequence[MethodRow], cells: Sequence[CellResult], budget: int, colours: Sequence[str]
) -> None:
    grid = np.linspace(0, budget, 50)
    for index, (row, colour) in enumerate(zip(rows, colours, strict=True)):
        curves = [cell.curve for cell in cells if cell.method == row.method]
        heights = [
            np.interp(grid, [point.tokens for point in curve], [point.without for point in curve]) for curve in curves
        ]
        style = ("-", "--", ":")[index // 10 % 3]
        axes.plot(grid / 1000, [100 * fmean(at) for at in zip(*heights, strict=True)], style, color=colour)
    axes.set_ylim(0, 100)
    axes.set_xlabel("tokens generated (thousands)")
    axes.set_ylabel("success without the skill, validation (%)")
    axes.grid(alpha=0.3)
