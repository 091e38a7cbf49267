"""Learning curves of a comparison: skill-free success by generated tokens, a panel per regime."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, sqrt
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np

from skillc_lab.report.style import TypeStyle, figure_style, new_figure, rate_axis, title, type_styles
from skillc_lab.studies.regimes import Regime
from skillc_lab.studies.result import CellResult
from trainers.recipes import RECOMMENDED

__all__ = ["TOLD_APART", "curve_names", "draw_curves"]

TOLD_APART = (RECOMMENDED, "skillc", "half_skill_grpo", "skill_grpo", "skill0")
"""Methods beside the baseline if there are more than a picture can tell apart and nobody chooses: the candidate, the
method of the paper, and what shows skills otherwise."""

_MOST = 6
"""Methods that colours tell apart."""


def curve_names(regimes: Sequence[Regime], methods: Sequence[str] = ()) -> list[str]:
    """The methods whose curves are drawn, the baseline first.

    Args:
        regimes: As :func:`~skillc_lab.studies.regimes.regimes_of` gives them.
        methods: Beside the baseline; if empty all of them, or :data:`TOLD_APART` where they are more than six.
    """
    baseline = regimes[0].rows[0].method
    run = dict.fromkeys(row.method for regime in regimes for row in regime.rows)
    chosen = methods or (run if len(run) <= _MOST else TOLD_APART)
    return [baseline, *(name for name in chosen if name in run and name != baseline)]


def draw_curves(regimes: Sequence[Regime], path: Path, *, methods: Sequence[str] = ()) -> None:
    """Draws each method's mean over seeds, with a band of one standard error where there are several.

    Args:
        regimes: As :func:`~skillc_lab.studies.regimes.regimes_of` gives them.
        path: A file whose ending names the format.
        methods: Beside the baseline, as for :func:`curve_names`.

    Raises:
        MissingExtraError: Without matplotlib.
    """
    names = curve_names(regimes, methods)
    styles = type_styles(names)
    across = min(3, len(regimes))
    down = ceil(len(regimes) / across)
    with figure_style():
        figure = new_figure(max(6.5, 1.0 + 4.2 * across), 3.6 * down + 0.5)
        panels = figure.subplots(down, across, squeeze=False, sharey=True)
        for axes, regime in zip(panels.flat, regimes, strict=False):
            _draw_panel(axes, regime, names, styles)
        for spare in panels.flat[len(regimes) :]:
            spare.axis("off")
        handles = {
            label: line for axes in figure.axes for line, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        figure.legend(
            handles.values(), handles.keys(), loc="outside lower center", ncols=min(len(names), 2 * across + 1)
        )
        figure.savefig(path)


def _draw_panel(axes: Any, regime: Regime, names: Sequence[str], styles: dict[str, TypeStyle]) -> None:
    grid = np.linspace(0, regime.budget, 101)
    for name in names:
        own = [cell for cell in regime.cells if cell.method == name]
        if own:
            _draw_method(axes, own, grid, styles[name])
    title(
        axes, f"{regime.name}, {regime.seeds}", "without the skill, validation panel; band: standard error over seeds"
    )
    axes.set_xlabel("tokens generated (thousands)")
    rate_axis(axes, "success rate")


def _draw_method(axes: Any, cells: Sequence[CellResult], grid: Any, style: TypeStyle) -> None:
    # A curve ends where the first of its runs did.
    grid = grid[grid <= min(cell.curve[-1].tokens for cell in cells)]
    heights = [np.interp(grid, [p.tokens for p in cell.curve], [p.without for p in cell.curve]) for cell in cells]
    columns = list(zip(*heights, strict=True))
    mean = np.array([fmean(at) for at in columns])
    axes.plot(grid / 1000, mean, color=style.colour, linestyle=style.linestyle, label=style.label)
    if len(cells) > 1:
        error = np.array([stdev(at) / sqrt(len(at)) for at in columns])
        axes.fill_between(grid / 1000, mean - error, mean + error, color=style.colour, alpha=0.18, linewidth=0)
