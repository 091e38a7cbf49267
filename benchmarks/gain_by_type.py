"""What one method gains over another, task type by task type, beside what the starting point could do.

``python -m benchmarks.gain_by_type RECORD ... --out FILE`` writes record, table and picture, FILE without its ending.
A type of a regime is one point: its success without the skill before training says how rare the essential step is, and
success with the skill how much there is to gain. It says where to look; verdicts are those of whole regimes.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.page_record import measure_and_write, record_names
from benchmarks.rates import points
from skillc_gym.errors import ConfigError
from skillc_lab.report import TypeStyle, figure_style, new_figure, title, type_styles
from skillc_lab.studies import CellResult, Regime, difference, read_record, regimes_of
from trainers.recipes import RECOMMENDED
from trainers.tracking import short_type

__all__ = ["draw_gains", "gains", "main"]

_BOUNDS = (0.1, 0.25)
"""Where a column of the picture ends and the next begins, in success without the skill before training."""


def gains(regime: Regime, method: str, beside: str) -> list[dict[str, Any]]:
    """A row for each task type of a regime: its rates before training, and the difference of two methods after it.

    Raises:
        ConfigError: One of the methods has no cells there, or the starting point was not played.
    """
    cells = {name: [cell for cell in regime.cells if cell.method == name] for name in (method, beside)}
    if regime.before is None or not all(cells.values()):
        raise ConfigError(f"{regime.name} needs cells of {method}, of {beside} and of its starting point")
    kinds = sorted({outcome.task_type for outcome in regime.before.outcomes})
    return [_row(regime, regime.before, kind, cells[method], cells[beside]) for kind in kinds]


def _row(
    regime: Regime, before: CellResult, kind: str, own: Sequence[CellResult], other: Sequence[CellResult]
) -> dict[str, Any]:
    start = _of_type(before, kind)
    found = difference([_of_type(cell, kind) for cell in own], [_of_type(cell, kind) for cell in other])
    return {
        "regime": regime.name,
        "task_type": kind,
        "tasks": len(start.outcomes),
        "seeds": found.seeds,
        "without_before": start.without,
        "with_before": start.with_skill,
        **found.to_json(),
    }


def _of_type(cell: CellResult, kind: str) -> CellResult:
    return replace(cell, outcomes=tuple(outcome for outcome in cell.outcomes if outcome.task_type == kind))


def draw_gains(record: Mapping[str, Any], path: Path) -> None:
    """Draws the gain of every type by its success without the skill before training, and by what it could gain.

    Args:
        record: As :func:`main` writes it.
        path: A file whose ending names the format.

    Raises:
        MissingExtraError: Without matplotlib.
    """
    styles = type_styles(list(dict.fromkeys(row["regime"] for row in record["types"])))
    with figure_style():
        figure = new_figure(10.5, 5.0)
        left, right = figure.subplots(1, 2, sharey=True)
        _draw_rarity(left, record["types"], styles)
        _draw_room(right, record["types"], styles)
        for axes in (left, right):
            axes.axhline(0, color="#3b414a", linewidth=0.9, linestyle=":", zorder=0)
        left.set_ylabel("points gained")
        left.set_ylim(-45, 105)
        how = "a point per task type; lines: 95 % over seeds and tasks"
        title(left, f"{record['method']} minus {record['beside']}", how)
        marks = [left.plot([], [], style.marker, color=style.colour)[0] for style in styles.values()]
        figure.legend(marks, list(styles), loc="outside lower center", ncols=3)
        figure.savefig(path)


def _draw_rarity(axes: Any, rows: Sequence[Mapping[str, Any]], styles: Mapping[str, TypeStyle]) -> None:
    """Columns, since most types never succeed: within one, points lie side by side."""
    bounds = (0.0, *_BOUNDS, 1.0)
    for column, (low, high) in enumerate(pairwise((-1.0, *bounds))):
        found = [row for row in rows if low < row["without_before"] <= high]
        for place, row in enumerate(found):
            _point(axes, column + (place - (len(found) - 1) / 2) * 0.05, row, styles[row["regime"]])
    names = ["never", *(f"up to {100 * high:.0f} %" for high in _BOUNDS), "more"]
    axes.set_xticks(range(len(names)), names)
    axes.set_xlim(-0.6, len(names) - 0.4)
    axes.grid(visible=False, axis="x")
    axes.set_xlabel("success without the skill before training")


def _draw_room(axes: Any, rows: Sequence[Mapping[str, Any]], styles: Mapping[str, TypeStyle]) -> None:
    for row in rows:
        _point(axes, row["with_before"] - row["without_before"], row, styles[row["regime"]])
    axes.set_xlim(-0.05, 1.05)
    axes.set_xlabel("with the skill minus without it, before training")


def _point(axes: Any, x: float, row: Mapping[str, Any], style: TypeStyle) -> None:
    low, high = row["interval"] or (row["mean"], row["mean"])
    axes.plot([x, x], [100 * low, 100 * high], color=style.colour, linewidth=0.9, alpha=0.6)
    axes.plot(x, 100 * row["mean"], style.marker, color=style.colour, markersize=6, zorder=3)


def _measure(options: argparse.Namespace) -> dict[str, Any]:
    regimes = [regime for path in options.records for regime in regimes_of([read_record(path)])]
    rows = [row for regime in regimes for row in gains(regime, options.method, options.beside)]
    named = {"method": options.method, "beside": options.beside, "records": record_names(options.records)}
    return {**named, "types": rows}


def _page(record: Mapping[str, Any]) -> str:
    lines = [
        f"# {record['method']} minus {record['beside']}, task type by task type",
        "",
        f"`python -m benchmarks.gain_by_type {' '.join(record['records'])} --out docs/results/gain_by_type`: success "
        "on held-out tasks without the skill, in points, 95 % over seeds and tasks, without adjustment. Types were not "
        "what the studies were declared for: this says where to look.",
        "",
        "![Gain by success before training](gain_by_type.png)",
        "",
        "| regime | type | tasks | seeds | without before | with before | gain |",
        "|---" * 7 + "|",
        *(_line(row) for row in record["types"]),
    ]
    return "\n".join(lines) + "\n"


def _line(row: Mapping[str, Any]) -> str:
    rates = " | ".join(f"{100 * row[name]:.1f}" for name in ("without_before", "with_before"))
    counts = f"{row['tasks']} | {row['seeds']}"
    return f"| {row['regime']} | {short_type(row['task_type'])} | {counts} | {rates} | {points(row, 0)} |"


def main(words: Sequence[str] | None = None) -> int:
    """Writes record, table and picture; 2 where a record is missing, or lacks one of the methods."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", type=Path, nargs="+", help="records of `skillc study`")
    parser.add_argument("--method", default=RECOMMENDED, help=f"what gains (default: {RECOMMENDED})")
    parser.add_argument("--beside", default="grpo", help="over what (default: grpo)")
    parser.add_argument("--out", type=Path, help="record, page and picture, without ending")
    options = parser.parse_args(words)
    record = measure_and_write(options, _measure, _page)
    if record is not None and options.out:
        draw_gains(record, options.out.with_suffix(".png"))
    return 2 if record is None else 0


if __name__ == "__main__":
    raise SystemExit(main())
