"""The mean of a table whose rows and columns are both drawn by chance: seeds by tasks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, variance

from trainers.evaluation.stats import Interval, MeanEstimate, t_quantile

__all__ = ["mean_over_seeds_and_tasks", "variance_of_mean"]


def mean_over_seeds_and_tasks(table: Sequence[Sequence[float]], level: float = 0.95) -> MeanEstimate:
    """Mean of a table with Student's interval over both sources of chance; none with one seed.

    Args:
        table: One row per seed, one column per task.
        level: Confidence level.
    """
    centre = fmean(fmean(row) for row in table)
    if len(table) < 2:
        return MeanEstimate(centre, None, 1)
    total, freedom = variance_of_mean(table)
    half = t_quantile((1 + level) / 2, freedom) * math.sqrt(total)
    return MeanEstimate(centre, Interval(centre - half, centre + half), len(table))


def variance_of_mean(table: Sequence[Sequence[float]]) -> tuple[float, int]:
    """Variance of the mean over seeds and tasks, with its degrees of freedom.

    For S seeds and T tasks it is ``max(s_seeds^2, s_episodes^2 / T) / S + s_tasks^2 / T``: the spread of the seeds'
    means, that of the tasks' means, and that of single episodes around both (the interaction's mean square of the
    two-way table). The seeds' mean square cannot be expected below that of single episodes, and with two or three
    seeds it often is by luck; without the floor such tables get intervals that are too narrow. The noise of single
    episodes stands in both terms, so that the sum errs on the side of noise. The degrees of freedom are Satterthwaite's
    (1946, Biometrics Bulletin 2).

    Args:
        table: One row per seed, one column per task. With one row only the tasks speak, with one column only the seeds.

    Returns:
        The variance, 0 where nothing varies, and the degrees of freedom, at least 1.
    """
    by_seed = [fmean(row) for row in table]
    by_task = [fmean(column) for column in zip(*table, strict=True)]
    parts = []
    if len(by_seed) > 1:
        noise = _episodes(table, by_seed, by_task) / len(by_task)
        parts.append((max(variance(by_seed), noise) / len(by_seed), len(by_seed) - 1))
    if len(by_task) > 1:
        parts.append((variance(by_task) / len(by_task), len(by_task) - 1))
    total = sum(part for part, _ in parts)
    if total == 0.0:
        return 0.0, 1
    return total, max(1, math.floor(total**2 / sum(part**2 / freedom for part, freedom in parts)))


def _episodes(table: Sequence[Sequence[float]], by_seed: Sequence[float], by_task: Sequence[float]) -> float:
    """Mean square of what neither the seed nor the task explains."""
    freedom = (len(by_seed) - 1) * (len(by_task) - 1)
    if freedom == 0:
        return 0.0
    centre = fmean(by_seed)
    left = (
        (value - of_seed - of_task + centre) ** 2
        for row, of_seed in zip(table, by_seed, strict=True)
        for value, of_task in zip(row, by_task, strict=True)
    )
    return sum(left) / freedom
