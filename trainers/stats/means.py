"""Means over seeds, and of tables whose rows and columns are both drawn by chance: seeds by tasks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev, variance

from skillc_gym.errors import ConfigError
from trainers.stats.intervals import Interval


@dataclass(frozen=True)
class MeanEstimate:
    """A mean over n independent repetitions; no interval for a single one, which says nothing about the spread."""

    mean: float
    interval: Interval | None
    n: int


def mean_over_seeds(values: Sequence[float], level: float = 0.95) -> MeanEstimate:
    """Mean and Student's t interval over independent runs."""
    if not values:
        raise ConfigError("A mean over seeds needs at least one value, got none")
    n, mean = len(values), fmean(values)
    if n == 1:
        return MeanEstimate(mean, None, 1)
    half = t_quantile((1 + level) / 2, n - 1) * stdev(values) / math.sqrt(n)
    return MeanEstimate(mean, Interval(mean - half, mean + half), n)


def mean_over_seeds_and_tasks(table: Sequence[Sequence[float]], level: float = 0.95) -> MeanEstimate:
    """Mean of a table (row per seed, column per task) with Student's interval over both; none with one seed."""
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


def t_quantile(probability: float, df: int) -> float:
    """Quantile of Student's t with a whole number of degrees of freedom, for probabilities from 0.5 up."""
    if df < 1 or not 0.5 <= probability < 1:
        raise ConfigError(f"t_quantile needs df >= 1 and 0.5 <= probability < 1, got {df} and {probability}")
    low, high = 0.0, 1.0
    while _t_within(high, df) < 2 * probability - 1:
        high *= 2.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if _t_within(middle, df) < 2 * probability - 1 else (low, middle)
    return high


def t_p_value(t: float, df: int) -> float:
    """Two-sided p-value of Student's t >= 0 with a whole number of degrees of freedom."""
    if df < 1 or not t >= 0:
        raise ConfigError(f"t_p_value needs t >= 0 and df >= 1, got {t} and {df}")
    return max(0.0, 1.0 - _t_within(t, df))


def _t_within(t: float, df: int) -> float:
    """P(|T| <= t): the finite sums of Abramowitz and Stegun, 26.7.3 and 26.7.4."""
    theta = math.atan(t / math.sqrt(df))
    sine, cosine = math.sin(theta), math.cos(theta)
    term = cosine if df % 2 else 1.0
    total = 0.0
    for k in range(2 + df % 2, df + 1, 2):
        total += term
        term *= cosine**2 * (k - 1) / k
    if df % 2:
        return 2 / math.pi * (theta + sine * total)
    return sine * total
