"""Pictures that are drawn from records alone.

``python -m benchmarks.pictures controls sensitivity`` draws some of those that pages show, into ``docs/pictures``.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.courses import draw_demonstration, draw_night, draw_types
from benchmarks.measuring import RECORDS, exit_status
from skillc_gym.errors import ConfigError
from skillc_lab.report import (
    SOFT,
    WITH,
    WITHOUT,
    LineStyle,
    canvas,
    method_styles,
    method_words,
    rate_axis,
    shared_legend,
    start_styles,
    title,
)
from skillc_lab.studies import (
    MethodRow,
    Regime,
    draw_band,
    draw_curves,
    draw_regime_map,
    read_method,
    read_record,
    regimes_of,
    with_method,
)
from skillc_lab.tables import read_json
from trainers.recipes import RECOMMENDED, get_recipe

Draw = Callable[[Path], object]
Points = dict[str, list[tuple[float, MethodRow]]]

_CONFIRMED = ("confirmation", "real_games_confirmation", "shop_confirmation", "shop_more_seeds")
_BOUNDS = (0.1, 0.25)
"""Where a column of the picture of gains ends and the next begins, in success without the skill before training."""


def _regimes(names: Sequence[str]) -> list[Regime]:
    return regimes_of([read_record(RECORDS / f"{name}.json") for name in names])


_GRPO_LATER = {
    "main_games": ("main_games_grpo", "grpo.t1.5"),
    "main_houses": ("main_houses_grpo", "grpo.lr0.0003.t1.5"),
    "main_shop": ("main_shop_grpo", "grpo.lr0.0003.minibatches4.t1.5"),
}
"""Where a setting of GRPO that its tuning tried last was higher, in the shop over training alone, on the same tasks and
seeds, in a later study."""


def tuned(name: str) -> Regime:
    """A main table, GRPO at its best setting."""
    record = read_record(RECORDS / f"{name}.json")
    if name in _GRPO_LATER:
        later, method = _GRPO_LATER[name]
        record = with_method(record, read_record(RECORDS / f"{later}.json"), method, record.baseline)
    return regimes_of([record])[0]


def _map(*names: str) -> Draw:
    return lambda path: draw_regime_map(_regimes(names), path)


def _curves(*names: str) -> Draw:
    return lambda path: draw_curves(_regimes(names), path)


def _long_curves(path: Path) -> None:
    """GRPO's hotter settings, which a later study has, stand beside the others."""
    record, later = (read_record(RECORDS / f"{name}.json") for name in ("long_houses", "long_houses_grpo"))
    for hotter in ("grpo.lr0.0003.t1.5", "grpo.lr0.0001.t1.5"):
        record = with_method(record, later, hotter)
    draw_curves(regimes_of([record]), path)


def _of(draw: Callable[[Mapping[str, Any], Path], object], name: str) -> Draw:
    return lambda path: draw(read_json(RECORDS / f"{name}.json"), path)


# README's picture: the course of training and where it ends, two methods, one plot per world ------------------------


_STRIP = "#f3f4f6"
"""The ground on which ends stand, beside the courses."""


def draw_first_picture(path: Path, stacked: bool = False) -> None:
    """Draws README's picture: who learns first and where it ends in three worlds, tuned; stacked for a telephone."""
    named = {"Houses": "main_houses", "ALFWorld's games": "main_games", "Shop": "main_shop"}
    worlds = {said: tuned(name) for said, name in named.items()}
    methods = ("grpo", RECOMMENDED)
    size, shape = ((4.4, 9.6), (len(worlds), 1)) if stacked else ((10.5, 4.0), (1, len(worlds)))
    with canvas(path, *size, _first_said(list(worlds.values()), methods)) as figure:
        for axes, (name, regime) in zip(figure.subplots(*shape, sharey=True), worlds.items(), strict=True):
            _draw_world(axes, regime, method_styles(methods))
            axes.set_title(f"{name}, {regime.seeds}", fontsize=10.5, loc="left")
        shared_legend(figure, 1 if stacked else 3)


def _draw_world(axes: Any, regime: Regime, styles: Mapping[str, LineStyle]) -> None:
    """Courses on the tasks of validation; to their right, on a grey strip, ends on new tasks."""
    width = regime.budget / 1000
    left, right = 1.04 * width, 1.55 * width
    axes.axvspan(left, right, color=_STRIP, zorder=0)
    rows = [_row(regime, name) for name in styles]
    for row, place in zip(rows, _apart([row.without.mean for row in rows]), strict=True):
        draw_band(axes, row, regime.budget, styles[row.method])
        _draw_ends(axes, row, styles[row.method].colour, (1.15 * width, 1.22 * width, place))
    if regime.before is not None:
        level = {"color": "#3b414a", "linewidth": 1.0, "linestyle": ":", "label": "with the skill, before training"}
        axes.plot([left, right], [regime.before.with_skill] * 2, **level)
    axes.set_xlim(0, right)
    axes.set_xticks([0, width / 2, width, (left + right) / 2], ["0", f"{width / 2:.0f}k", f"{width:.0f}k", "new tasks"])
    axes.set_xlabel("tokens; validation tasks ± standard error", loc="left", fontsize=9)
    rate_axis(axes, "success without the skill" if axes.get_subplotspec().is_first_col() else "")


def _draw_ends(axes: Any, row: MethodRow, colour: str, at: tuple[float, float, float]) -> None:
    """Every seed a point, their mean a larger one, and its figure; at the points' x and the figure's x and y."""
    x, *beside = at
    axes.plot([x] * len(row.cells), [cell.without for cell in row.cells], ".", color=colour, alpha=0.6)
    axes.plot(x, row.without.mean, "o", markersize=7, color=colour, markeredgecolor="white")
    box = {"facecolor": _STRIP, "edgecolor": "none", "pad": 1.0}
    shown = {"va": "center", "fontsize": 11, "color": colour, "fontweight": "bold", "bbox": box}
    axes.annotate(f"{100 * row.without.mean:.0f} %", beside, **shown)


def _row(regime: Regime, method: str) -> MethodRow:
    row = regime.row(method)
    if row is None:
        raise ConfigError(f"{regime.name} has no cells of {method}, which README's picture shows")
    return row


def _apart(heights: Sequence[float]) -> list[float]:
    """Where the figures of two points stand, so that they can be read where the points meet."""
    first, second = heights
    gap = max(0.0, 0.08 - abs(first - second)) / 2
    return [first - gap, second + gap] if first <= second else [first + gap, second - gap]


def _first_said(regimes: Sequence[Regime], methods: Sequence[str]) -> str:
    """What the picture shows, panel by panel, in one sentence made from its own figures."""
    pairs = [[_row(regime, method) for method in methods] for regime in regimes]
    course = [f"{100 * (own.area.mean - base.area.mean):+.0f}" for base, own in pairs]
    against = [own.against for _, own in pairs if own.against]
    ends = ["level" if each.verdict == "equivalent" else f"{100 * each.difference.mean:+.0f}" for each in against]
    own = method_words(methods[1]).capitalize()
    return f"{own} minus GRPO: over training {', '.join(course)}; at the budget's end {', '.join(ends)}"


# Pictures of one record -----------------------------------------------------------------------------------------------


def parameters_of(regime: Regime) -> Points:
    """Rows of the baseline with one changed option, by that option, in the order of its values.

    The baseline itself stands at its own value of every option.
    """
    baseline = regime.rows[0]
    name, chosen = read_method(baseline.method)
    recipe = get_recipe(name, **chosen)
    defaults, own = recipe.options, recipe.overrides
    found: Points = {}
    for row in regime.rows[1:]:
        method, options = read_method(row.method)
        # Options by the names of today, whichever the record has.
        now = get_recipe(method, **options).overrides
        changed = {key: value for key, value in now.items() if own.get(key) != value}
        if method == name and len(changed) == 1:
            ((option, value),) = changed.items()
            found.setdefault(option, [(float(defaults[option]), baseline)]).append((float(value), row))
    return {option: sorted(points, key=lambda point: point[0]) for option, points in found.items()}


def draw_sensitivity(regime: Regime, path: Path) -> None:
    """Draws a plot per parameter: success without and with the skill by the parameter's value."""
    table = parameters_of(regime)
    if not table:
        raise ConfigError("Sensitivity needs methods such as skillc:omega=0.2 beside their baseline skillc")
    with canvas(path, 1.0 + 2.1 * len(table), 3.2, _sensitivity_said(regime, table)) as figure:
        row = figure.subplots(1, len(table), squeeze=False, sharey=True)[0]
        for axes, (option, points) in zip(row, table.items(), strict=True):
            _draw_parameter(axes, option, points)
        rate_axis(row[0])
        row[0].legend(loc="upper left", fontsize=8)


def _sensitivity_said(regime: Regime, table: Points) -> str:
    baseline = regime.rows[0]
    ends = [100 * row.without.mean for points in table.values() for _, row in points if row is not baseline]
    return (
        f"{method_words(baseline.method)} ends at {100 * baseline.without.mean:.0f} % without the skill, at "
        f"{min(ends):.0f} to {max(ends):.0f} % with one option changed ({regime.name}, {regime.seeds})"
    )


def _draw_parameter(axes: Any, option: str, points: Sequence[tuple[float, MethodRow]]) -> None:
    for style, arm in ((WITH, "with_skill"), (WITHOUT, "without")):
        estimates = [getattr(row, arm) for _, row in points]
        axes.plot(range(len(points)), [each.mean for each in estimates], **style)
        for place, ((_, row), each) in enumerate(zip(points, estimates, strict=True)):
            seeds, colour = row.by_seed(arm), style["color"]
            axes.plot([place] * len(seeds), seeds, ".", color=colour, markersize=4, alpha=0.6)
            if each.interval is not None:
                axes.plot([place] * 2, [each.interval.low, each.interval.high], color=colour, linewidth=1)
    axes.set_xticks(range(len(points)), [f"{value:g}" for value, _ in points])
    axes.set_xlim(-0.4, len(points) - 0.6)
    title(axes, option)


def draw_gains(record: Mapping[str, Any], path: Path) -> None:
    """Draws the gain of every type by its success without the skill before training, and by what it could gain."""
    rows = record["types"]
    styles = start_styles(list(dict.fromkeys(row["regime"] for row in rows)))
    with canvas(path, 10.5, 5.0, _gains_said(record)) as figure:
        left, right = figure.subplots(1, 2, sharey=True)
        _draw_rarity(left, rows, styles)
        for row in rows:
            _point(right, row["with_before"] - row["without_before"], row, styles[row["regime"]])
        right.set_xlim(-0.05, 1.05)
        right.set_xlabel("with the skill minus without it, before training")
        for axes in (left, right):
            axes.axhline(0, color="#3b414a", linewidth=0.9, linestyle=":", zorder=0)
        left.set_ylabel("points gained")
        title(left, "By success before training", "a point per task type; lines: 95 % over seeds and tasks")
        title(right, "By what the skill adds before training", "the same points")
        shared_legend(figure, 4)


def _gains_said(record: Mapping[str, Any]) -> str:
    """The mean gain of the types that never succeed before training, and of all others."""
    never, others = (
        fmean(100 * row["mean"] for row in record["types"] if (row["without_before"] == 0) == zero)
        for zero in (True, False)
    )
    own, beside = method_words(record["method"]), method_words(record["beside"])
    said = f"{own} gains {never:.0f} points on {beside} where a type never succeeds at first, {others:.0f} elsewhere"
    return said[0].upper() + said[1:]


def _draw_rarity(axes: Any, rows: Sequence[Mapping[str, Any]], styles: Mapping[str, LineStyle]) -> None:
    """Columns, since most types never succeed: within one, points lie side by side."""
    for column, (low, high) in enumerate(pairwise((-1.0, 0.0, *_BOUNDS, 1.0))):
        found = [row for row in rows if low < row["without_before"] <= high]
        for place, row in enumerate(found):
            _point(axes, column + (place - (len(found) - 1) / 2) * 0.05, row, styles[row["regime"]])
    names = ["never", *(f"up to {100 * high:.0f} %" for high in _BOUNDS), "more"]
    axes.set_xticks(range(len(names)), names)
    axes.set_xlim(-0.6, len(names) - 0.4)
    axes.grid(visible=False, axis="x")
    axes.set_xlabel("success without the skill before training")


def _point(axes: Any, x: float, row: Mapping[str, Any], style: LineStyle) -> None:
    low, high = (min(max(end, -1.0), 1.0) for end in row["interval"] or (row["mean"], row["mean"]))
    axes.plot([x, x], [100 * low, 100 * high], color=style.colour, linewidth=0.9, alpha=0.6)
    look = {**style.look, "linestyle": "none", "label": style.label, "markersize": 6, "zorder": 3}
    axes.plot(x, 100 * row["mean"], **look)


def draw_planted(record: Mapping[str, Any], path: Path) -> None:
    """Draws, for each memory, the useful entry's share of the uses, and every planted entry's utility, by updates."""
    by_method: dict[str, list[list[Mapping[str, Any]]]] = {}
    for run in record["runs"]:
        by_method.setdefault(run["method"], []).append(run["updates"])
    useful = record["useful"]
    found = [fmean(_late_share(run, useful) for run in runs) for runs in by_method.values()]
    said = f"{sum(share > 0.5 for share in found)} of {len(found)} memories come to use the useful entry most"
    how = "; black: the useful entry; grey: the useless ones; dotted: chance; a line per seed"
    with canvas(path, 13.6, 5.2, said + how) as figure:
        plots = figure.subplots(2, len(by_method), sharex=True, sharey="row")
        for (upper, lower), (method, runs) in zip(plots.T, by_method.items(), strict=True):
            for run in runs:
                _draw_entries(upper, lower, run, useful)
            title(upper, method_words(method))
            upper.axhline(1 / len(record["planted"]), color=SOFT, linewidth=0.9, linestyle=":")
            lower.set_xlabel("update")
            lower.xaxis.get_major_locator().set_params(integer=True)
        rate_axis(plots[0][0], "share of uses in %")
        plots[1][0].set_ylabel("utility")


def _shares(run: Sequence[Mapping[str, Any]], useful: str) -> list[float | None]:
    """The useful entry's share of the uses of every update; None where none of those planted was used."""
    uses = [Counter({name: entry["uses"] for name, entry in update.items()}) for update in run]
    new = [after - before for before, after in pairwise([Counter[str](), *uses])]
    return [each[useful] / each.total() if each else None for each in new]


def _late_share(run: Sequence[Mapping[str, Any]], useful: str) -> float:
    late = [share for share in _shares(run, useful)[len(run) // 2 :] if share is not None]
    return fmean(late) if late else 0.0


def _draw_entries(upper: Any, lower: Any, run: Sequence[Mapping[str, Any]], useful: str) -> None:
    shares = [(update, share) for update, share in enumerate(_shares(run, useful), 1) if share is not None]
    upper.plot(*zip(*shares, strict=True), color="#111418", alpha=0.7, marker=".")
    for name in sorted({name for update in run for name in update}, key=useful.__eq__):
        course = [(at, update[name]["utility"]) for at, update in enumerate(run, 1) if name in update]
        lower.plot(*zip(*course, strict=True), color="#111418" if name == useful else "#c9cdd4", alpha=0.7)


DRAWN: Mapping[str, Draw] = {
    "confirmation_curves": _curves("confirmation"),
    "controls": _map("controls"),
    "controls_easy": _map("controls_easy"),
    "demo_generated/methods": _of(draw_demonstration, "demo_generated"),
    "smollm2_night": _of(draw_night, "smollm2_night"),
    "demo_webshop_generated/methods": _of(draw_demonstration, "demo_webshop_generated"),
    "gain_by_type": _of(draw_gains, "gain_by_type"),
    "hero": draw_first_picture,
    "hero_stacked": partial(draw_first_picture, stacked=True),
    "long_games_curves": _curves("long_games"),
    "long_houses_curves": _long_curves,
    "main_games": _map("main_games"),
    "main_games_curves": _curves("main_games"),
    "main_houses": _map("main_houses"),
    "main_houses_curves": _curves("main_houses"),
    "main_houses_types": lambda path: draw_types(tuned("main_houses"), ("grpo", RECOMMENDED), path),
    "main_shop_curves": _curves("main_shop"),
    "main_shop_grpo_curves": lambda path: draw_curves([tuned("main_shop")], path),
    "planted_entries": _of(draw_planted, "planted_entries"),
    "planted_entries_only": _of(draw_planted, "planted_entries_only"),
    "real_games_controls": _map("real_games_controls"),
    "real_games_controls_curves": _curves("real_games_controls"),
    "regime_map": _map("first_table", "first_table_easy"),
    "regime_map_confirmed": _map(*_CONFIRMED),
    "regime_map_confirmed_curves": _curves(*_CONFIRMED),
    "regime_map_curves": _curves("first_table", "first_table_easy"),
    "sensitivity": lambda path: draw_sensitivity(_regimes(["sensitivity"])[0], path),
    "shop_controls": _map("shop_controls"),
    "shop_controls_curves": _curves("shop_controls"),
}
"""What draws each picture; those that do not lie in ``docs/pictures`` are drawn when the site is built."""


def main(words: Sequence[str] | None = None) -> int:
    """Draws; 2 where a record is missing or has nothing to draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", choices=DRAWN, help="pictures of pages")
    parser.add_argument("--out", type=Path, default=Path("docs/pictures"), help="folder of the pictures")
    return exit_status(partial(_draw, parser.parse_args(words)))


def _draw(options: argparse.Namespace) -> None:
    for name in options.names:
        path = options.out / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        DRAWN[name](path)


if __name__ == "__main__":
    sys.exit(main())
