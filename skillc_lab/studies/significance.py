"""Whether two methods differ by more than noise, over seeds and over tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from skillc_gym.errors import ConfigError
from skillc_lab.studies.result import CellResult, area_under_curve, area_weights
from trainers.stats import Difference, Interval, MeanEstimate, mean_difference, mean_over_seeds_and_tasks


def difference(first: Sequence[CellResult], second: Sequence[CellResult], *, skill: bool = False) -> Difference:
    """Compares two methods' success over the seeds that both have, task by task, on one panel; skill-free by default.

    Seeds and tasks are two sources of chance; :func:`~trainers.stats.variance_of_mean` adds them up. With
    one seed only the tasks are left, and nothing is said of seeds.
    """
    pairs = _pairs(first, second)
    return mean_difference([(_won(own, skill=skill), _won(other, skill=skill)) for own, other in pairs])


def area_difference(first: Sequence[CellResult], second: Sequence[CellResult], budget: int) -> Difference:
    """The same of the area under skill-free success: one area per seed and task of the validation panel."""
    tables = [(_areas(own, budget), _areas(other, budget)) for own, other in _pairs(first, second)]
    if len({len(row) for pair in tables for row in pair}) > 1:
        tables = [([fmean(own)], [fmean(other)]) for own, other in tables]
    return mean_difference(tables)


def change(cells: Sequence[CellResult], before: CellResult, *, skill: bool) -> Difference:
    """Compares a method's cells with the starting point that they were trained from; statistics as of `difference`."""
    pairs = [(cell, before) for cell in cells]
    _require_one_panel(pairs)
    return mean_difference([(_won(cell, skill=skill), _won(before, skill=skill)) for cell, before in pairs])


def success(cells: Sequence[CellResult], *, skill: bool) -> MeanEstimate:
    """Mean success of a method after training; its interval is of seeds and tasks together, None with one seed."""
    return _level([_won(cell, skill=skill) for cell in cells])


def area(cells: Sequence[CellResult], budget: int) -> MeanEstimate:
    """Mean area under skill-free success of a method; its interval is of seeds and tasks together."""
    return _level([_areas(cell, budget) for cell in cells])


def _pairs(first: Sequence[CellResult], second: Sequence[CellResult]) -> list[tuple[CellResult, CellResult]]:
    others = {cell.seed: cell for cell in second}
    pairs = [(cell, others[cell.seed]) for cell in first if cell.seed in others]
    _require_one_panel(pairs)
    return pairs


def _require_one_panel(pairs: Sequence[tuple[CellResult, CellResult]]) -> None:
    if not pairs:
        raise ConfigError("Two methods are compared over the seeds that both have, and they have none in common")
    panels = {cell.panel_sha256 for pair in pairs for cell in pair}
    if len(panels) > 1:
        raise ConfigError(f"Methods are compared on one panel; these cells have {len(panels)}")


def _level(table: Sequence[Sequence[float]]) -> MeanEstimate:
    one_panel = len({len(row) for row in table}) == 1
    found = mean_over_seeds_and_tasks(table if one_panel else [[fmean(row)] for row in table])
    if found.interval is None:
        return found
    # Student's t knows no bounds, and a rate has two.
    return replace(found, interval=Interval(max(0.0, found.interval.low), min(1.0, found.interval.high)))


def _won(cell: CellResult, *, skill: bool) -> list[float]:
    ordered = sorted(cell.outcomes, key=lambda outcome: outcome.task_id)
    return [float(outcome.won_with if skill else outcome.won_without) for outcome in ordered]


def _areas(cell: CellResult, budget: int) -> list[float]:
    """The area of every task of the validation panel; of all of them together where the record has no tasks."""
    weights = area_weights(cell.curve, budget)
    rows = [point.won_without for point in cell.curve]
    if not rows[0] or len({len(row) for row in rows}) > 1:
        return [area_under_curve(cell.curve, budget)]
    return [sum(w for w, row in zip(weights, rows, strict=True) if row[task] == "1") for task in range(len(rows[0]))]
