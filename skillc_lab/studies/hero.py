"""The first picture of the project: before and after, every seed a line, two methods, one panel per world."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from textwrap import wrap
from typing import Any

from skillc_gym.errors import ConfigError
from skillc_lab.report import LineStyle, figure_style, method_styles, new_figure, rate_axis
from skillc_lab.studies.record import Regime


def before_and_after(regime: Regime, method: str) -> list[tuple[float, float]]:
    """Success without the skill before and after training on the same held-out tasks, one pair per seed."""
    row = regime.row(method)
    if row is None or regime.before is None:
        raise ConfigError(f"{regime.name} has no runs of {method!r}, or its start was not played before training")
    return [(regime.before.without, cell.without) for cell in row.cells]


def draw_hero(regimes: Mapping[str, Regime], methods: Sequence[str], path: Path, stacked: bool = False) -> str:
    """Draws one panel per world: a thin line per seed, a thick one for their mean, the level with the skill dotted.

    Regimes stand under their panels' titles, the baseline first of two methods; ``stacked`` is for a telephone. The
    picture's title, its message, is returned.
    """
    message, styles = _message(list(regimes.values()), methods), method_styles(methods)
    with figure_style():
        figure = new_figure(4.2, 8.6) if stacked else new_figure(10.5, 3.9)
        shape = (len(regimes), 1) if stacked else (1, len(regimes))
        for axes, (name, regime) in zip(figure.subplots(*shape, sharey=True), regimes.items(), strict=True):
            _draw_world(axes, regime, styles)
            axes.set_title(f"{name}, {regime.seeds}", fontsize=10.5, loc="left")
        lines, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(lines, labels, loc="outside lower center", ncols=1 if stacked else len(labels))
        shown = "\n".join(wrap(message, 44)) if stacked else message
        figure.suptitle(shown, x=0.01, ha="left", fontsize=11 if stacked else 12.5, fontweight="bold")
        figure.savefig(path)
    return message


def _draw_world(axes: Any, regime: Regime, styles: Mapping[str, LineStyle]) -> None:
    for method, style in styles.items():
        pairs = before_and_after(regime, method)
        for pair in pairs:
            axes.plot((0, 1), pair, color=style.colour, linewidth=0.8, alpha=0.55)
        before, after = (fmean(side) for side in zip(*pairs, strict=True))
        mean = {"color": style.colour, "label": style.label, "linewidth": 3.0, "marker": "o", "markersize": 6}
        axes.plot((0, 1), (before, after), **mean)
        box = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
        shown = {"va": "center", "fontsize": 11, "color": style.colour, "fontweight": "bold", "bbox": box}
        axes.annotate(f"{100 * after:.0f} %", (1.05, after), **shown)
    if regime.before is not None:
        level = {"color": "#3b414a", "linewidth": 1.0, "linestyle": ":", "label": "with the skill, before training"}
        axes.axhline(regime.before.with_skill, **level)
    axes.set_xlim(-0.08, 1.35)
    axes.set_xticks([0, 1], ["before", "after training"])
    rate_axis(axes, "success without the skill" if axes.get_subplotspec().is_first_col() else "")


def _message(regimes: Sequence[Regime], methods: Sequence[str]) -> str:
    """What the picture shows, in one sentence made from its own figures."""
    spans = []
    for method in methods:
        means = [fmean(after for _, after in before_and_after(regime, method)) for regime in regimes]
        spans.append(f"{100 * min(means):.0f} to {100 * max(means):.0f} %")
    before = max(regime.before.without for regime in regimes if regime.before is not None)
    baseline, own = spans
    return f"Without the skill {100 * before:.0f} % succeed before training, {own} after it; after GRPO {baseline}"
