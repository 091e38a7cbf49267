"""Intervals for rates and for differences of rates on the same tasks.

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
from statistics import NormalDist

import numpy as np

from skillc_gym.errors import ConfigError


@dataclass(frozen=True)
class Interval:
    """A confidence interval."""

    low: float
    high: float

    def excludes(self, value: float) -> bool:
        """Whether the value lies outside, touching not counted as outside."""
        return not self.low <= value <= self.high

    def __iter__(self) -> Iterator[float]:
        """Both ends, the lower first."""
        return iter((self.low, self.high))

    def to_json(self) -> list[float]:
        """Both ends, the lower first."""
        return [self.low, self.high]


def wilson(successes: float, n: int, level: float = 0.95) -> Interval:
    """Wilson's score interval of a rate.

    ``successes`` is a fraction where each of the n tasks counts by its own rate.
    """
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
    """Interval of ``rate(first) - rate(second)`` where both were measured on the same tasks.

    The four arguments count tasks: where both succeeded, only the first did, only the second did, neither did.
    """
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
    """The smallest difference of two rates on the same n tasks that their interval would set apart from none.

    The normal approximation of Connor (1987, Biometrics 43): ``sqrt(n) d = z_a sqrt(p) + z_b sqrt(p - d^2)``, solved
    for the difference d. At most 1.

    Args:
        n: Tasks.
        disagreeing: Share p of the tasks that one of the two solves and the other does not, as a pilot found it; at
            least d itself, since no two rates differ by more.
        level: Of the interval.
        power: Chance of setting it apart.
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
