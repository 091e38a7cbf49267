"""The regime map: for every world and starting point, what each method gains over the baseline and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from pathlib import Path
from typing import Any

from skillc_lab.report.style import SOFT, figure_style, new_figure, title
from skillc_lab.studies.regimes import Regime, by_lead
from skillc_lab.studies.table import MethodRow
from trainers.stats import MeanEstimate

__all__ = ["draw_regime_map"]

_HATCHED: dict[str, Any] = {"facecolor": "white", "edgecolor": "#aab0b9", "hatch": "////"}
_DASHED: dict[str, Any] = {"facecolor": "white", "edgecolor": "#aab0b9", "linestyle": (0, (2, 2))}
_PLAIN: dict[str, dict[str, Any]] = {
    "baseline": {"facecolor": "#3b414a"},
    "as good": {"facecolor": "#c3c8cf"},
    "inside the noise": _HATCHED,
    "one seed": _DASHED,
    "fewer seeds": _DASHED,
}
"""Bars that say nothing of a lead."""
_FELL = "#b2182b"


def draw_regime_map(regimes: Sequence[Regime], path: Path, *, methods: Sequence[str] = ()) -> None:
    """Draws a panel per regime: success without the skill as bars, success with it beside them.

    A bar is coloured by its difference from the baseline where that is significant after Holm's adjustment; it is grey
    where the method is as good within five points, hatched where nothing can be said, dashed with one seed, or fewer
    than the baseline has.

    Args:
        regimes: As :func:`~skillc_lab.studies.regimes.regimes_of` gives them.
        path: A file whose ending names the format.
        methods: These beside the baseline alone; all if empty.

    Raises:
        ConfigError: One of the methods was run nowhere.
        MissingExtraError: Without matplotlib.
    """
    names = by_lead(regimes, methods)
    across = min(2, len(regimes))
    down = ceil(len(regimes) / across)
    with figure_style():
        figure = new_figure(max(9.5, 5.2 * across + 1.6), down * (1.5 + 0.24 * len(names)) + 0.9)
        panels = figure.subplots(down, 2 * across, width_ratios=[1.9, 1.0] * across, squeeze=False)
        colours = _colours(regimes)
        for place, regime in enumerate(regimes):
            left, right = panels[place // across][2 * (place % across) :][:2]
            _draw_without(left, regime, names, colours, labelled=place % across == 0)
            _draw_with(right, regime, names)
        for spare in panels.flat[2 * len(regimes) :]:
            spare.axis("off")
        _explain(figure, colours)
        figure.savefig(path)


def _colours(regimes: Sequence[Regime]) -> Any:
    """Colours of differences, the same in every panel."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    found = [abs(row.against.difference.mean) for regime in regimes for row in regime.rows if row.against]
    largest = max([0.1, *found])
    return ScalarMappable(Normalize(-100 * largest, 100 * largest), "PuOr_r")


def _look(row: MethodRow, colours: Any) -> dict[str, Any]:
    if row.against is None:
        return _PLAIN["baseline"]
    plain = _PLAIN.get(row.against.verdict)
    return plain or {"facecolor": colours.to_rgba(100 * row.against.difference.mean), "edgecolor": "#7d848e"}


def _draw_without(axes: Any, regime: Regime, names: Sequence[str], colours: Any, *, labelled: bool) -> None:
    for place, name in enumerate(names):
        row = regime.row(name)
        if row is None:
            axes.annotate("not run", (0.01, place), va="center", fontsize=8, color=SOFT)
            continue
        axes.barh(place, row.without.mean, height=0.68, linewidth=0.8, **_look(row, colours))
        end = _whisker(axes, place, row.without)
        lead = "" if row.against is None else f" ({_points(row.against.difference.mean)})"
        axes.annotate(f"{100 * row.without.mean:.0f}{lead}", (end + 0.015, place), va="center", fontsize=8.5)
    axes.axvline(regime.rows[0].without.mean, color="#3b414a", linewidth=0.9, linestyle=":", zorder=0)
    axes.set_yticks(range(len(names)), names if labelled else [])
    _finish(axes, names, 1.18)
    before = "" if regime.before is None else f"; {100 * regime.before.without:.0f} % before"
    title(axes, f"{regime.name}, {regime.seeds}", f"success without the skill{before}")


def _draw_with(axes: Any, regime: Regime, names: Sequence[str]) -> None:
    for place, name in enumerate(names):
        row = regime.row(name)
        if row is None:
            continue
        change = row.changes.get("with")
        fell = change is not None and change.interval is not None and change.interval.high < 0 and change.seeds > 1
        colour = _FELL if fell else "#5b626d"
        end = _whisker(axes, place, row.with_skill, colour)
        axes.plot(row.with_skill.mean, place, marker="s", markersize=5, color=colour, mfc="white", zorder=4)
        if change is not None:
            axes.annotate(_points(change.mean), (end + 0.03, place), va="center", fontsize=8.5, color=colour)
    if regime.before is not None:
        axes.axvline(regime.before.with_skill, color="#5b626d", linewidth=0.9, linestyle=":", zorder=0)
    axes.set_yticks(range(len(names)), [])
    _finish(axes, names, 1.22)
    before = "" if regime.before is None else f"; {100 * regime.before.with_skill:.0f} % before"
    title(axes, "", f"with it{before}")


def _points(difference: float) -> str:
    return f"{round(100 * difference):+d}"


def _whisker(axes: Any, y: float, estimate: MeanEstimate, colour: str = "#111418") -> float:
    """Draws the interval where there is one; where it ends on the right."""
    if estimate.interval is None:
        return estimate.mean
    low, high = max(0.0, estimate.interval.low), min(1.0, estimate.interval.high)
    axes.plot([low, high], [y, y], color=colour, linewidth=1.2, zorder=3)
    return high


def _finish(axes: Any, names: Sequence[str], end: float) -> None:
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlim(0.0, end)
    axes.set_xticks([0, 0.5, 1.0], ["0", "50", "100 %"])
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")


def _explain(figure: Any, colours: Any) -> None:
    from matplotlib.patches import Patch

    words = {
        "baseline": "baseline",
        "as good": "as good, within 5 points",
        "inside the noise": "inside the noise",
        "one seed": "too few seeds, no verdict",
    }
    patches = [Patch(label=text, **_PLAIN[key]) for key, text in words.items()]
    bar = figure.colorbar(colours, ax=figure.axes, location="bottom", shrink=0.5, aspect=45, pad=0.02)
    bar.set_label(
        "colour: points from the baseline, where significant after Holm; lines: 95 % over seeds and tasks;\n"
        "dotted: baseline on the left, before training on the right; red: success with the skill fell"
    )
    figure.legend(handles=patches, loc="outside lower center", ncols=4)
