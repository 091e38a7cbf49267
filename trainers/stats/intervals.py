"""Intervals for rates, for differences of rates on the same tasks, and for means over seeds and tasks.

Rates get Wilson's score interval: it stays within [0, 1] and keeps its coverage at rates near 0 and 1, where trained
and untrained policies live. Differences of two rates measured on the same tasks get Newcombe's square-and-add interval
for paired proportions (Newcombe 1998, Statistics in Medicine 17, method 10): it is built from the two Wilson intervals
and the correlation of the pairs, and unlike the bootstrap it does not collapse to a point where no pair disagrees.
Where the outcome is no yes or no (scores), a bootstrap over tasks, fixed by its seed, takes its place.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, stdev, variance

import numpy as np

from skillc_gym.errors import ConfigError


@dataclass(frozen=True)
class Interval:
    """A confidence interval."""

    low: float
    high: float

    def __iter__(self) -> Iterator[float]:
        return iter((self.low, self.high))

    def to_json(self) -> list[float]:
        """Both ends, the lower first."""
        return [self.low, self.high]


def wilson(successes: float, n: float, level: float = 0.95) -> Interval:
    """Wilson's score interval of a rate; both counts may be fractions."""
    if not 0 <= successes <= n or n == 0:
        raise ConfigError(f"A rate needs 0 <= successes <= n and n > 0, got {successes} of {n}")
    z2 = _z(level) ** 2
    rate = successes / n
    centre = (rate + z2 / (2 * n)) / (1 + z2 / n)
    half = math.sqrt(z2 * (rate * (1 - rate) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    # At the ends the formula is exact on paper and off by rounding here.
    return Interval(0.0 if successes == 0 else centre - half, 1.0 if successes == n else centre + half)


def paired_difference(
    both: float, only_first: float, only_second: float, neither: float, level: float = 0.95
) -> Interval:
    """Interval of ``rate(first) - rate(second)`` on the same tasks, counted by which of the two succeeded."""
    n = round(both + only_first + only_second + neither)
    if n == 0 or min(both, only_first, only_second, neither) < 0:
        raise ConfigError(f"A paired difference needs counts of tasks, got {(both, only_first, only_second, neither)}")
    first, second = both + only_first, both + only_second
    a, b = wilson(first, n, level), wilson(second, n, level)
    phi = _correlation(both, only_first, only_second, neither)
    change = (first - second) / n
    below = _add_squares(first / n - a.low, b.high - second / n, phi)
    above = _add_squares(a.high - first / n, second / n - b.low, phi)
    return Interval(max(-1.0, change - below), min(1.0, change + above))


def detectable_difference(n: int, disagreeing: float, level: float = 0.95, power: float = 0.8) -> float:
    """The smallest difference of two rates on the same n tasks that their interval would set apart from none (80 %).

    The normal approximation of Connor (1987, Biometrics 43): ``sqrt(n) d = z_a sqrt(p) + z_b sqrt(p - d^2)``, solved
    for the difference d, at most 1. p is the share of tasks that one of the two solves and the other does not, as a
    pilot found it; at least d itself, since no two rates differ by more.
    """
    if n < 1 or not 0 <= disagreeing <= 1:
        raise ConfigError(f"A detectable difference needs tasks and a share of them, got {n} and {disagreeing}")
    first, second = _z(level), NormalDist().inv_cdf(power)
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        share = max(disagreeing, middle)
        wanted = first * math.sqrt(share) + second * math.sqrt(share - middle * middle)
        low, high = (low, middle) if wanted <= math.sqrt(n) * middle else (middle, high)
    return high


def bootstrap_mean(values: Sequence[float], *, seed: int, level: float = 0.95, resamples: int = 10_000) -> Interval:
    """Percentile bootstrap of a mean over tasks, one value (a score, or a difference of two) per task."""
    if not len(values):
        raise ConfigError("A bootstrap needs at least one value, got none")
    array = np.asarray(values, dtype=np.float64)
    rng = np.random.default_rng(seed)
    means = np.asarray([array[rng.integers(array.size, size=array.size)].mean() for _ in range(resamples)])
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high))


def _z(level: float) -> float:
    if not 0 < level < 1:
        raise ConfigError(f"A confidence level lies between 0 and 1, got {level}")
    return NormalDist().inv_cdf((1 + level) / 2)


def _correlation(a: float, b: float, c: float, d: float) -> float:
    margins = (a + b) * (c + d) * (a + c) * (b + d)
    if margins == 0:
        return 0.0
    product = a * d - b * c
    # Newcombe's correction: a positive correlation is believed only as far as half a pair per task allows.
    product = max(product - (a + b + c + d) / 2, 0.0) if product > 0 else product
    return product / math.sqrt(margins)


def _add_squares(x: float, y: float, phi: float) -> float:
    return math.sqrt(max(0.0, x * x - 2 * phi * x * y + y * y))


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
    """Mean of a table (row per seed, column per task) with Student's interval over both; none with one seed.

    Where nothing varied at all, the error is what a single episode that differs would make.
    """
    centre = fmean(fmean(row) for row in table)
    if len(table) < 2:
        return MeanEstimate(centre, None, 1)
    total, freedom = noise_of_mean(table)
    half = t_quantile((1 + level) / 2, freedom) * math.sqrt(total)
    return MeanEstimate(centre, Interval(centre - half, centre + half), len(table))


_ROUNDING = 1e-18
"""What is left of a variance where sums of equal figures were rounded differently."""


def noise_of_mean(table: Sequence[Sequence[float]]) -> tuple[float, int]:
    """As :func:`variance_of_mean`; where nothing varied at all, that of one more win, the least that may be claimed."""
    total, freedom = variance_of_mean(table)
    if total > _ROUNDING:
        return total, freedom
    (first, *rest), *others = table
    return variance_of_mean([[first + 1.0, *rest], *others])


def variance_of_mean(table: Sequence[Sequence[float]]) -> tuple[float, int]:
    """Variance of the mean over seeds and tasks, with its degrees of freedom.

    For S seeds and T tasks it is ``max(s_seeds^2, s_episodes^2 / T) / S + s_tasks^2 / T``: the spread of the seeds'
    means, that of the tasks' means, and that of single episodes around both (the interaction's mean square of the
    two-way table). The seeds' mean square cannot be expected below that of single episodes, and with two or three
    seeds it often is by luck; without the floor such tables get intervals that are too narrow. The noise of single
    episodes stands in both terms, so that the sum errs on the side of noise. The degrees of freedom, at least 1, are
    Satterthwaite's (1946, Biometrics Bulletin 2). The table has a row per seed and a column per task: with one row only
    the tasks speak, with one column only the seeds.
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
