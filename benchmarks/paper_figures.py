"""The figures of the method's paper, from this project's runs and records.

``python -m benchmarks.paper_figures --run RUN --costs RECORD --sensitivity RECORD --out FOLDER`` writes what each of
them gives: dynamics and schedule of a run (``success``, ``success_by_type``, ``gap``, ``gate``, ``active``,
``rollout_fraction``), seconds of an update beside GRPO's (``cost``), success by a parameter (``sensitivity``).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.status import exit_status
from skillc_gym.errors import ConfigError
from skillc_lab.report import (
    SOFT,
    WITH,
    WITHOUT,
    RunRecords,
    figure_style,
    new_figure,
    rate_axis,
    read_object,
    save_figures,
    title,
)
from skillc_lab.studies import MethodRow, Regime, read_method, read_record, regimes_of
from trainers.recipes import get_recipe

__all__ = ["draw_cost", "draw_sensitivity", "main", "parameters_of"]

Points = dict[str, list[tuple[float, MethodRow]]]


def parameters_of(regime: Regime) -> Points:
    """Rows of the baseline with one changed option, by that option, in the order of its values.

    The baseline itself stands at its own value of every option.
    """
    baseline = regime.rows[0]
    name, own = read_method(baseline.method)
    defaults: Mapping[str, Any] = get_recipe(name, **own).options
    found: Points = {}
    for row in regime.rows[1:]:
        method, options = read_method(row.method)
        changed = {key: value for key, value in options.items() if own.get(key) != value}
        if method == name and len(changed) == 1:
            ((option, value),) = changed.items()
            found.setdefault(option, [(float(defaults[option]), baseline)]).append((float(value), row))
    return {option: sorted(points, key=lambda point: point[0]) for option, points in found.items()}


def draw_sensitivity(regimes: Sequence[Regime], path: Path) -> None:
    """Draws a row per regime and a panel per parameter: success without and with the skill by the parameter's value.

    Raises:
        ConfigError: No method is the baseline with one option changed.
    """
    tables = [parameters_of(regime) for regime in regimes]
    options = list(dict.fromkeys(option for table in tables for option in table))
    if not options:
        raise ConfigError("Sensitivity needs methods such as skillc:omega=0.2 beside their baseline skillc")
    with figure_style():
        figure = new_figure(1.0 + 2.1 * len(options), 0.6 + 2.6 * len(regimes))
        panels = figure.subplots(len(regimes), len(options), squeeze=False, sharey=True)
        for row, regime, table in zip(panels, regimes, tables, strict=True):
            for axes, option in zip(row, options, strict=True):
                _draw_parameter(axes, option, table.get(option, []))
            row[0].annotate(regime.name, (0, 1.16), xycoords="axes fraction", fontsize=9, color=SOFT)
            rate_axis(row[0], "success rate")
        panels[0][0].legend(loc="upper left", fontsize=8)
        figure.savefig(path)


def draw_cost(record: Mapping[str, Any], path: Path) -> None:
    """Draws seconds of an update over GRPO's from a record of ``benchmarks.method_costs``.

    Raises:
        ConfigError: It is another record.
    """
    try:
        rows = [(str(row["method"]), row["to_grpo"], row["to_grpo_on_its_rollouts"]) for row in record["methods"]]
    except (KeyError, TypeError) as error:
        raise ConfigError(
            f"The cost of an update is drawn from a record of benchmarks.method_costs: {error}"
        ) from error
    with figure_style():
        figure = new_figure(7.2, 1.6 + 0.3 * len(rows))
        axes = figure.subplots()
        places = range(len(rows))
        axes.barh(places, [own for _, own, _ in rows], height=0.6, color="#9fb0c6", label="on its own rollouts")
        axes.plot([same for *_, same in rows], places, "D", color="#111418", markersize=5, label="on the same rollouts")
        axes.axvline(1.0, color="#3b414a", linewidth=0.9, linestyle=":")
        axes.set_yticks(places, [name for name, *_ in rows])
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.grid(visible=False, axis="y")
        title(axes, "Seconds of an update, GRPO's being 1", "medians; measured in turns in one process")
        figure.legend(loc="outside lower center", ncols=2)
        figure.savefig(path)


def _draw_parameter(axes: Any, option: str, points: Sequence[tuple[float, MethodRow]]) -> None:
    places = range(len(points))
    for style, estimates in (
        (WITH, [row.with_skill for _, row in points]),
        (WITHOUT, [row.without for _, row in points]),
    ):
        axes.plot(places, [each.mean for each in estimates], **style)
        for place, each in zip(places, estimates, strict=True):
            if each.interval is not None:
                axes.plot([place] * 2, [each.interval.low, each.interval.high], color=style["color"], linewidth=1)
    axes.set_xticks(places, [f"{value:g}" for value, _ in points])
    axes.set_xlim(-0.4, max(len(points), 1) - 0.6)
    title(axes, option)


def main(words: list[str] | None = None) -> int:
    """Draws what the options name; 2 where a record or a run is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, help="folder of a training run: dynamics and schedule")
    parser.add_argument("--costs", type=Path, help="record of benchmarks.method_costs")
    parser.add_argument("--sensitivity", type=Path, help="record of benchmarks/studies/sensitivity.yaml")
    parser.add_argument("--out", type=Path, required=True, help="folder of the pictures")
    options = parser.parse_args(words)
    return exit_status(partial(_draw, options))


def _draw(options: argparse.Namespace) -> None:
    options.out.mkdir(parents=True, exist_ok=True)
    if options.run:
        save_figures(RunRecords.read(options.run), options.out)
    if options.costs:
        draw_cost(read_object(options.costs), options.out / "cost.png")
    if options.sensitivity:
        draw_sensitivity(regimes_of([read_record(options.sensitivity)]), options.out / "sensitivity.png")


if __name__ == "__main__":
    sys.exit(main())
