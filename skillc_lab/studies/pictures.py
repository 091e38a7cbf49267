"""The two pictures of a comparison: the map of what every method came to, and the learning curves."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from math import ceil, sqrt
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from skillc_lab.report import (
    SOFT,
    LineStyle,
    canvas,
    method_styles,
    method_words,
    rate_axis,
    shared_legend,
    title,
)
from skillc_lab.studies.record import ComparisonRecord, Regime, by_lead
from skillc_lab.studies.result import CurvePoint
from skillc_lab.studies.table import MethodRow, comparison_table
from trainers.config import RECOMMENDED
from trainers.stats import MeanEstimate

TOLD_APART = (RECOMMENDED, "contrastive_relabelling", "context_distillation", "skillc", "skill0")
"""Methods beside the baseline if there are more than a picture can tell apart: the candidate, its nearest relatives,
the method of the paper, and what withdraws skills otherwise."""

_NAMED = 5
"""Most methods whose curves are drawn, apart from the baseline's."""
_HATCHED: dict[str, Any] = {"facecolor": "white", "edgecolor": "#aab0b9", "hatch": "////"}
_DASHED: dict[str, Any] = {"facecolor": "white", "edgecolor": "#aab0b9", "linestyle": (0, (2, 2))}
_PLAIN: dict[str, dict[str, Any]] = {
    "baseline": {"facecolor": "#3b414a"},
    "equivalent": {"facecolor": "#c3c8cf"},
    "no significant difference": _HATCHED,
    "one seed": _DASHED,
    "fewer seeds": _DASHED,
}
"""Bars that say nothing of a lead."""
_FEW = 8
"""Curves of at most so many validations have a marker at each."""
_QUIET, _FELL = "#5b626d", "#b2182b"
_LETTER, _ROOM = 0.077, 1.8
"""Inches that a letter of a method's name takes, and that names have before a map becomes wider."""


def draw_record(record: ComparisonRecord, folder: Path) -> list[Path]:
    """Writes ``table.md``, the map of outcomes and the learning curves; their paths.

    Nothing is drawn before the baseline has a cell; what was drawn of others goes.
    """
    regimes = record.regimes
    paths = [folder / name for name in ("table.md", f"{record.title}.png", f"{record.title}-curves.png")]
    if not regimes:
        for path in paths:
            path.unlink(missing_ok=True)
        return []
    sections = [
        f"## {each.start}\n\n" * bool(each.start) + comparison_table(each.rows, each.before).markdown()
        for each in regimes
    ]
    paths[0].write_text("\n\n".join(sections) + "\n", encoding="utf-8")
    draw_regime_map(regimes, paths[1])
    draw_curves(regimes, paths[2])
    return paths


def _interval(axes: Any, y: float, estimate: MeanEstimate, colour: str) -> float:
    """Draws the interval where there is one, white around it for dark bars, and returns where it ends on the right."""
    from matplotlib.patheffects import withStroke

    if estimate.interval is None:
        return estimate.mean
    halo = [withStroke(linewidth=2.8, foreground="white")]
    axes.plot([*estimate.interval], [y, y], color=colour, linewidth=1.2, zorder=3, path_effects=halo)
    return estimate.interval.high


def _headline(rows: Sequence[MethodRow], what: str) -> str:
    """The highest mean of some rows, and the baseline's, which is the first, or the next: figures, and no verdict."""
    means = {method_words(row.method): getattr(row, what).mean for row in rows}
    ranked = sorted(means, key=lambda name: -means[name])
    chosen = list(dict.fromkeys([ranked[0], next(iter(means)), *ranked]))[:2]
    said = ", ".join(f"{name}\N{NO-BREAK SPACE}{100 * means[name]:.0f} %" for name in chosen)
    return said[0].upper() + said[1:]


def _seeds(axes: Any, y: float, values: Sequence[float], colour: str) -> None:
    look = {"marker": ".", "markersize": 5.5, "markeredgewidth": 0.6, "markeredgecolor": "white", "zorder": 5}
    axes.plot(values, [y] * len(values), linestyle="none", color=colour, **look)


# Learning curves: one plot per regime ---------------------------------------------------------------------------------


def curve_names(regimes: Sequence[Regime]) -> list[str]:
    """The baseline, then the other methods; of more than five :data:`TOLD_APART`, or else the five highest means."""
    baseline, areas = regimes[0].rows[0].method, dict[str, list[float]]()
    for row in (row for regime in regimes for row in regime.rows if row.method != baseline):
        areas.setdefault(row.method, []).append(row.area.mean)
    if len(areas) <= _NAMED:
        return [baseline, *areas]
    told = [name for name in TOLD_APART if name in areas]
    return [baseline, *(told or sorted(areas, key=lambda name: -fmean(areas[name]))[:_NAMED])]


def draw_curves(regimes: Sequence[Regime], path: Path) -> None:
    """Draws each method's mean over seeds, with a band of one standard error; methods as of :func:`curve_names`."""
    styles = method_styles(curve_names(regimes))
    across = min(3, len(regimes))
    down = ceil(len(regimes) / across)
    with canvas(path, max(6.5, 1.0 + 4.2 * across), 3.6 * down + 0.5) as figure:
        for axes, regime in zip_longest(figure.subplots(down, across, squeeze=False, sharey=True).flat, regimes):
            if regime is None:
                axes.axis("off")
                continue
            drawn = [row for name in styles if (row := regime.row(name))]
            for row in drawn:
                draw_band(axes, row, regime.budget, styles[row.method])
            how = f"{regime.name}, {regime.seeds}, without the skill; band: standard error; points: seeds at their end"
            title(axes, f"{_headline(drawn, 'area')} averaged over training", how)
            axes.set_xlabel("tokens generated (thousands)")
            rate_axis(axes, "success in %" if axes.get_subplotspec().is_first_col() else "")
        shared_legend(figure, min(len(styles), 2 * across + 1))


def draw_band(axes: Any, row: MethodRow, budget: int, style: LineStyle) -> None:
    """Draws a method's mean over its seeds with a band of one standard error, and where each seed ends, as a point."""
    curves = [cell.curve for cell in row.cells]
    ends = [curve[-1] for curve in curves]
    grid = np.linspace(0, budget, 101)
    # A curve ends where the first of its runs did.
    grid = grid[grid <= min(end.tokens for end in ends)]
    heights = np.array([np.interp(grid, [p.tokens for p in curve], [p.without for p in curve]) for curve in curves])
    mean, look = heights.mean(axis=0), {**style.look, "markevery": _validations(curves, grid)}
    axes.plot(grid / 1000, mean, label=style.label, **look)
    look = {"marker": ".", "markersize": 5, "alpha": 0.7, "markeredgewidth": 0}
    axes.plot([e.tokens / 1000 for e in ends], [e.without for e in ends], linestyle="none", color=style.colour, **look)
    if len(curves) > 1:
        error = heights.std(axis=0, ddof=1) / sqrt(len(curves))
        axes.fill_between(grid / 1000, mean - error, mean + error, color=style.colour, alpha=0.18, linewidth=0)


def _validations(curves: Sequence[Sequence[CurvePoint]], grid: Any) -> list[int]:
    """Where markers stand: at each validation, at the mean of the runs' tokens; nowhere if there are many."""
    if max(map(len, curves)) > _FEW:
        return []
    tokens = [fmean(point.tokens for point in points) for points in zip(*curves, strict=False)]
    return sorted({int(np.abs(grid - at).argmin()) for at in tokens})


# The regime map: what each method gains over the baseline and what it costs -------------------------------------------


def draw_regime_map(regimes: Sequence[Regime], path: Path) -> None:
    """Draws two plots per regime: success without the skill as bars, success with it to their right.

    A bar is coloured by its difference from the baseline where that is significant after Holm's adjustment; it is grey
    where the method is equivalent within five points, hatched where nothing can be said, dashed with one seed, or fewer
    than the baseline has.
    """
    names = by_lead(regimes)
    across = min(2, len(regimes))
    down = ceil(len(regimes) / across)
    beside = _LETTER * max(len(method_words(name)) for name in names)
    width = max(9.5, 5.2 * across + 1.6) + max(0.0, beside - _ROOM)
    with canvas(path, width, down * (1.5 + 0.24 * len(names)) + 0.9) as figure:
        plots = figure.subplots(down, 2 * across, width_ratios=[1.9, 1.0] * across, squeeze=False)
        colours = _colours(regimes)
        for place, regime in enumerate(regimes):
            left, right = plots[place // across][2 * (place % across) :][:2]
            _draw_without(left, regime, names, colours, beside)
            _name_rows(left, names if place % across == 0 else [])
            _draw_with(right, regime, names, beside)
        for spare in plots.flat[2 * len(regimes) :]:
            spare.axis("off")
        _explain(figure, colours)


def _name_rows(axes: Any, names: Sequence[str]) -> None:
    """Names beside the bars; those of the two methods that most pictures show have their colours."""
    axes.set_yticks(range(len(names)), [method_words(name) for name in names])
    for name, label in zip(names, axes.get_yticklabels(), strict=True):
        if name in ("grpo", RECOMMENDED):
            label.set(color=method_styles([name])[name].colour, fontweight="bold")


def _colours(regimes: Sequence[Regime]) -> Any:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    found = [abs(row.against.difference.mean) for regime in regimes for row in regime.rows if row.against]
    largest = max([0.1, *found])
    return ScalarMappable(Normalize(-100 * largest, 100 * largest), "PRGn")


def _look(row: MethodRow, colours: Any) -> dict[str, Any]:
    if row.against is None:
        return _PLAIN["baseline"]
    coloured = {"facecolor": colours.to_rgba(100 * row.against.difference.mean), "edgecolor": "#7d848e"}
    return _PLAIN.get(row.against.verdict, coloured)


def _draw_without(axes: Any, regime: Regime, names: Sequence[str], colours: Any, beside: float) -> None:
    for place, name in enumerate(names):
        row = regime.row(name)
        if row is None:
            axes.annotate("not run", (0.01, place), va="center", fontsize=8, color=SOFT)
            continue
        axes.barh(place, row.without.mean, height=0.68, linewidth=0.8, **_look(row, colours))
        _seeds(axes, place + 0.2, row.by_seed("without"), "#111418")
        end = _interval(axes, place, row.without, "#111418")
        lead = "" if row.against is None else f" ({_whole_points(row.against.difference.mean)})"
        axes.annotate(f"{100 * row.without.mean:.0f}{lead}", (end + 0.015, place), va="center", fontsize=8.5)
    axes.axvline(regime.rows[0].without.mean, color="#3b414a", linewidth=0.9, linestyle=":", zorder=0)
    _finish(axes, len(names), 1.18)
    before = "" if regime.before is None else f"; {100 * regime.before.without:.0f} % before"
    drawn = [row for name in names if (row := regime.row(name))]
    title(axes, _headline(drawn, "without"), f"{regime.name}, {regime.seeds}; without the skill{before}", beside)


def _draw_with(axes: Any, regime: Regime, names: Sequence[str], beside: float) -> None:
    for place, row in ((place, row) for place, name in enumerate(names) if (row := regime.row(name))):
        change = row.changes.get("with")
        fell = change is not None and change.interval.high < 0 and change.seeds > 1
        colour = _FELL if fell else _QUIET
        end = _interval(axes, place, row.with_skill, colour)
        _seeds(axes, place + 0.25, row.by_seed("with_skill"), colour)
        axes.plot(row.with_skill.mean, place, marker="s", markersize=5, color=colour, mfc="white", zorder=4)
        if change is not None:
            axes.annotate(_whole_points(change.mean), (end + 0.03, place), va="center", fontsize=8.5, color=colour)
    if regime.before is not None:
        axes.axvline(regime.before.with_skill, color=_QUIET, linewidth=0.9, linestyle=":", zorder=0)
    axes.set_yticks(range(len(names)), [])
    _finish(axes, len(names), 1.22)
    before = "" if regime.before is None else f"; {100 * regime.before.with_skill:.0f} % before"
    title(axes, "With it", f"success{before}", beside)


def _whole_points(difference: float) -> str:
    return f"{round(100 * difference):+d}"


def _finish(axes: Any, count: int, end: float) -> None:
    axes.set_ylim(count - 0.4, -0.6)
    axes.set_xlim(0.0, end)
    axes.set_xticks([0, 0.5, 1.0], ["0", "50", "100 %"])
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")


def _explain(figure: Any, colours: Any) -> None:
    from matplotlib.patches import Patch

    words = {
        "baseline": "baseline",
        "equivalent": "equivalent, within 5 points",
        "no significant difference": "no significant difference",
        "one seed": "too few seeds, no verdict",
    }
    patches = [Patch(label=text, **_PLAIN[key]) for key, text in words.items()]
    bar = figure.colorbar(colours, ax=figure.axes, location="bottom", shrink=0.5, aspect=45, pad=0.02)
    bar.set_label(
        "colour: points from the baseline, where significant after Holm; lines: 95 % over seeds and tasks;\n"
        "points: seeds; dotted: baseline on the left, before training on the right; red: success with the skill fell"
    )
    figure.legend(handles=patches, loc="outside lower center", ncols=4)
