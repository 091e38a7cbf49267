"""Whether two methods differ by more than noise, over seeds and over tasks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, variance
from typing import Any, Literal

from skillc_gym.errors import ConfigError
from trainers.comparison.result import CellResult
from trainers.evaluation.stats import Interval, mean_over_seeds, t_p_value, t_quantile

__all__ = ["MARGIN", "Difference", "Verdict", "change", "difference", "holm"]

Verdict = Literal["better", "worse", "as good", "inside the noise"]
MARGIN = 0.05
"""What counts as equal: five points."""


@dataclass(frozen=True)
class Difference:
    """A method's success after training minus another's, or minus that of the starting point.

    Attributes:
        mean: Over seeds and tasks.
        interval: 95 %, of seeds and tasks together; None where nothing could be estimated.
        narrow: 90 % interval, for equivalence.
        p_value: Of no difference, two-sided; 1 where nothing could be estimated.
        over_seeds: 95 % interval of Student's t over the seeds' means alone; None with one seed.
        over_tasks: The same over the tasks' means alone: what the panel leaves open.
    """

    mean: float
    interval: Interval | None
    narrow: Interval | None
    p_value: float
    over_seeds: Interval | None = None
    over_tasks: Interval | None = None

    def verdict(self, adjusted_p: float, margin: float = MARGIN) -> Verdict:
        """What may be said.

        Args:
            adjusted_p: The p-value after :func:`holm` over the methods of the table.
            margin: "As good" means the 90 % interval lies within this margin on both sides (two one-sided tests).
        """
        if adjusted_p < 0.05:
            return "better" if self.mean > 0 else "worse"
        if self.narrow is not None and -margin < self.narrow.low and self.narrow.high < margin:
            return "as good"
        return "inside the noise"

    def to_json(self) -> dict[str, Any]:
        """JSON-able values."""
        names = ("interval", "narrow", "over_seeds", "over_tasks")
        intervals = {name: found and found.to_json() for name in names for found in [getattr(self, name)]}
        return {"mean": self.mean, "p_value": self.p_value, **intervals}


def difference(first: Sequence[CellResult], second: Sequence[CellResult]) -> Difference:
    """Compares two methods' skill-free success over the seeds that both have.

    Seeds and tasks are two sources of chance. The variance of the mean difference is taken as
    ``s_seeds^2 / S + s_tasks^2 / T``, where ``s_seeds`` is the spread of the seeds' mean differences and ``s_tasks``
    that of the tasks' (each over the other), with Satterthwaite's degrees of freedom. The sum counts the noise of
    single episodes twice, so it errs on the side of noise. With one seed only the tasks are left, and nothing is said
    of seeds.

    Args:
        first: Cells of one method.
        second: Cells of another, on the same panel.

    Raises:
        ConfigError: No seed in common, or different panels.
    """
    others = {cell.seed: cell for cell in second}
    pairs = [(cell, others[cell.seed]) for cell in first if cell.seed in others]
    return _difference(pairs, skill=False)


def change(cells: Sequence[CellResult], before: CellResult, *, skill: bool) -> Difference:
    """Compares a method's cells with the starting point that they were trained from; statistics as of `difference`.

    Args:
        cells: Cells of one method.
        before: The starting point, on the same panel.
        skill: Whether success with the skill is compared, or without.

    Raises:
        ConfigError: No cells, or different panels.
    """
    return _difference([(cell, before) for cell in cells], skill=skill)


def _difference(pairs: Sequence[tuple[CellResult, CellResult]], *, skill: bool) -> Difference:
    if not pairs:
        raise ConfigError("Two methods are compared over the seeds that both have, and they have none in common")
    panels = {cell.panel_sha256 for pair in pairs for cell in pair}
    if len(panels) > 1:
        raise ConfigError(f"Methods are compared on one panel; these cells have {len(panels)}")
    table = [[a - b for a, b in zip(_won(own, skill), _won(other, skill), strict=True)] for own, other in pairs]
    by_seed = [fmean(row) for row in table]
    by_task = [fmean(column) for column in zip(*table, strict=True)]
    parts = [(variance(values) / len(values), len(values) - 1) for values in (by_seed, by_task) if len(values) > 1]
    total = sum(part for part, _ in parts)
    if total == 0.0:
        return Difference(fmean(by_seed), None, None, 1.0)
    freedom = max(1, math.floor(total**2 / sum(part**2 / df for part, df in parts)))
    centre, error = fmean(by_seed), math.sqrt(total)
    wide, narrow = (t_quantile(p, freedom) * error for p in (0.975, 0.95))
    return Difference(
        mean=centre,
        interval=Interval(centre - wide, centre + wide),
        narrow=Interval(centre - narrow, centre + narrow),
        p_value=t_p_value(abs(centre) / error, freedom),
        over_seeds=mean_over_seeds(by_seed).interval,
        over_tasks=mean_over_seeds(by_task).interval,
    )


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Holm's step-down adjustment of several p-values (Holm 1979, Scandinavian Journal of Statistics 6)."""
    adjusted: dict[str, float] = {}
    highest = 0.0
    for rank, name in enumerate(sorted(p_values, key=lambda name: p_values[name])):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[name]))
        adjusted[name] = highest
    return {name: adjusted[name] for name in p_values}


def _won(cell: CellResult, skill: bool) -> list[float]:
    ordered = sorted(cell.outcomes, key=lambda outcome: outcome.task_id)
    return [float(outcome.won_with if skill else outcome.won_without) for outcome in ordered]
