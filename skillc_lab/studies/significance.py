"""Whether two methods differ by more than noise, over seeds and over tasks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Literal

from skillc_gym.errors import ConfigError
from skillc_lab.studies.crossed import mean_over_seeds_and_tasks, variance_of_mean
from skillc_lab.studies.result import CellResult, area_weights
from trainers.evaluation.stats import Interval, MeanEstimate, mean_over_seeds, t_p_value, t_quantile

__all__ = ["MARGIN", "Difference", "Verdict", "area", "area_difference", "change", "difference", "holm", "success"]

Verdict = Literal["better", "worse", "as good", "inside the noise", "one seed", "fewer seeds"]
MARGIN = 0.05
"""What counts as equal: five points."""


@dataclass(frozen=True)
class Difference:
    """A method's success after training minus another's, or minus that of the starting point.

    Attributes:
        mean: Over seeds and tasks.
        error: Standard error of the mean, of seeds and tasks together; 0 where nothing varied.
        freedom: Its degrees of freedom.
        seeds: Pairs of runs that it rests on.
        over_seeds: 95 % interval of Student's t over the seeds' means alone; None with one seed.
        over_tasks: The same over the tasks' means alone: what the panel leaves open.
    """

    mean: float
    error: float
    freedom: int
    seeds: int
    over_seeds: Interval | None = None
    over_tasks: Interval | None = None

    @property
    def interval(self) -> Interval | None:
        """95 %, of seeds and tasks together; None where nothing varied."""
        return self._within(0.975)

    @property
    def narrow(self) -> Interval | None:
        """90 % interval, for equivalence."""
        return self._within(0.95)

    @property
    def p_value(self) -> float:
        """Of no difference, two-sided; 1 where nothing varied."""
        return t_p_value(abs(self.mean) / self.error, self.freedom) if self.error else 1.0

    def equivalence_p(self, margin: float = MARGIN) -> float:
        """Of a difference of at least the margin: the larger of two one-sided tests; 1 where nothing varied."""
        if not self.error:
            return 1.0
        return self._beyond((margin - abs(self.mean)) / self.error)

    def not_lower_p(self, margin: float = MARGIN) -> float:
        """Of a difference of at least the margin downwards, one-sided; 1 where nothing varied."""
        return self._beyond((self.mean + margin) / self.error) if self.error else 1.0

    def verdict(self, adjusted_p: float, equivalence_p: float | None = None) -> Verdict:
        """What may be said; of methods nothing with one seed, whose chance it does not show.

        Args:
            adjusted_p: The p-value after :func:`holm` over the methods of the table.
            equivalence_p: That of equivalence after the same; its own by default.
        """
        if self.seeds < 2:
            return "one seed"
        if adjusted_p < 0.05:
            return "better" if self.mean > 0 else "worse"
        if (self.equivalence_p() if equivalence_p is None else equivalence_p) < 0.05:
            return "as good"
        return "inside the noise"

    def to_json(self) -> dict[str, Any]:
        """JSON-able values."""
        names = ("interval", "narrow", "over_seeds", "over_tasks")
        intervals = {name: found and found.to_json() for name in names for found in [getattr(self, name)]}
        return {"mean": self.mean, "p_value": self.p_value, "equivalence_p": self.equivalence_p(), **intervals}

    def _beyond(self, statistic: float) -> float:
        """Probability of more than this statistic, by chance alone."""
        tail = t_p_value(abs(statistic), self.freedom) / 2
        return tail if statistic > 0 else 1.0 - tail

    def _within(self, quantile: float) -> Interval | None:
        if not self.error:
            return None
        half = t_quantile(quantile, self.freedom) * self.error
        return Interval(self.mean - half, self.mean + half)


def difference(first: Sequence[CellResult], second: Sequence[CellResult]) -> Difference:
    """Compares two methods' skill-free success over the seeds that both have, task by task.

    Seeds and tasks are two sources of chance; :func:`~skillc_lab.studies.crossed.variance_of_mean` adds them up. With
    one seed only the tasks are left, and nothing is said of seeds.

    Args:
        first: Cells of one method.
        second: Cells of another, on the same panel.

    Raises:
        ConfigError: No seed in common, or different panels.
    """
    pairs = _pairs(first, second)
    return _difference([(_won(own, skill=False), _won(other, skill=False)) for own, other in pairs])


def area_difference(first: Sequence[CellResult], second: Sequence[CellResult], budget: int) -> Difference:
    """The same of the area under skill-free success: one area per seed and task of the validation panel.

    Args:
        first: Cells of one method.
        second: Cells of another.
        budget: Generated tokens over which the area is taken.

    Raises:
        ConfigError: No seed in common, or different panels.
    """
    pairs = _pairs(first, second)
    tables = [[_areas(cell, budget) for cell in pair] for pair in pairs]
    if len({len(row) for pair in tables for row in pair}) > 1:
        tables = [[[fmean(row)] for row in pair] for pair in tables]
    return _difference([(own, other) for own, other in tables])


def change(cells: Sequence[CellResult], before: CellResult, *, skill: bool) -> Difference:
    """Compares a method's cells with the starting point that they were trained from; statistics as of `difference`.

    Args:
        cells: Cells of one method.
        before: The starting point, on the same panel.
        skill: Whether success with the skill is compared, or without.

    Raises:
        ConfigError: No cells, or different panels.
    """
    pairs = [(cell, before) for cell in cells]
    _require_one_panel(pairs)
    return _difference([(_won(cell, skill=skill), _won(before, skill=skill)) for cell, before in pairs])


def success(cells: Sequence[CellResult], *, skill: bool) -> MeanEstimate:
    """Mean success of a method after training; its interval is of seeds and tasks together, None with one seed."""
    return _level([_won(cell, skill=skill) for cell in cells])


def area(cells: Sequence[CellResult], budget: int) -> MeanEstimate:
    """Mean area under skill-free success of a method; its interval is of seeds and tasks together."""
    return _level([_areas(cell, budget) for cell in cells])


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Holm's step-down adjustment of several p-values (Holm 1979, Scandinavian Journal of Statistics 6)."""
    adjusted: dict[str, float] = {}
    highest = 0.0
    for rank, name in enumerate(sorted(p_values, key=lambda name: p_values[name])):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[name]))
        adjusted[name] = highest
    return {name: adjusted[name] for name in p_values}


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


def _difference(pairs: Sequence[tuple[Sequence[float], Sequence[float]]]) -> Difference:
    """Of rows of values, one value per task, pair by pair."""
    table = [[a - b for a, b in zip(own, other, strict=True)] for own, other in pairs]
    by_seed = [fmean(row) for row in table]
    total, freedom = variance_of_mean(table)
    if total == 0.0:
        return Difference(fmean(by_seed), 0.0, 1, len(pairs))
    return Difference(
        mean=fmean(by_seed),
        error=math.sqrt(total),
        freedom=freedom,
        seeds=len(pairs),
        over_seeds=mean_over_seeds(by_seed).interval,
        over_tasks=mean_over_seeds([fmean(column) for column in zip(*table, strict=True)]).interval,
    )


def _level(table: Sequence[Sequence[float]]) -> MeanEstimate:
    one_panel = len({len(row) for row in table}) == 1
    return mean_over_seeds_and_tasks(table if one_panel else [[fmean(row)] for row in table])


def _won(cell: CellResult, *, skill: bool) -> list[float]:
    ordered = sorted(cell.outcomes, key=lambda outcome: outcome.task_id)
    return [float(outcome.won_with if skill else outcome.won_without) for outcome in ordered]


def _areas(cell: CellResult, budget: int) -> list[float]:
    """The area of every task of the validation panel; of all of them together where the record has no tasks."""
    weights = area_weights(cell.curve, budget)
    rows = [point.won_without for point in cell.curve]
    if not rows[0] or len({len(row) for row in rows}) > 1:
        return [sum(w * point.without for w, point in zip(weights, cell.curve, strict=True))]
    return [sum(w for w, row in zip(weights, rows, strict=True) if row[task] == "1") for task in range(len(rows[0]))]
