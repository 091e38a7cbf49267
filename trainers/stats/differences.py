"""Whether two means differ by more than noise, or by less than a margin: paired over seeds and tasks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Literal

import numpy as np

from trainers.stats.intervals import Interval, mean_over_seeds, noise_of_mean, t_p_value, t_quantile

Verdict = Literal["better", "worse", "equivalent", "no significant difference", "one seed", "fewer seeds"]
MARGIN = 0.05
"""What counts as equal: five points."""


@dataclass(frozen=True)
class Difference:
    """A method's success after training minus another's, or minus that of the starting point.

    The ``mean`` is over seeds and tasks, ``error`` its standard error with that ``freedom``.
    Student's intervals over the seeds' or the tasks' means alone (what the panel leaves open) are None with one seed;
    ``by_seed`` are the seeds' own differences.
    """

    mean: float
    error: float
    freedom: int
    seeds: int
    over_seeds: Interval | None = None
    over_tasks: Interval | None = None
    by_seed: tuple[float, ...] = ()

    @property
    def interval(self) -> Interval:
        """95 %, of seeds and tasks together."""
        return self._within(0.975)

    @property
    def interval_90(self) -> Interval:
        """90 % interval, for equivalence."""
        return self._within(0.95)

    @property
    def p_value(self) -> float:
        """Of no difference, two-sided."""
        return t_p_value(abs(self.mean) / self.error, self.freedom)

    @property
    def seeds_ahead(self) -> int:
        """In how many seeds the first of the two did better."""
        return sum(value > 0 for value in self.by_seed)

    def equivalence_p(self, margin: float = MARGIN) -> float:
        """Of a difference of at least the margin: the larger of two one-sided tests."""
        return self._beyond((margin - abs(self.mean)) / self.error)

    def not_lower_p(self, margin: float = MARGIN) -> float:
        """Of a difference of at least the margin downwards, one-sided."""
        return self._beyond((self.mean + margin) / self.error)

    def verdict(self, adjusted_p: float, equivalence_p: float | None = None) -> Verdict:
        """What may be said, by p-values after :func:`holm` over the methods of a table; with one seed nothing."""
        if self.seeds < 2:
            return "one seed"
        if adjusted_p < 0.05:
            return "better" if self.mean > 0 else "worse"
        if (self.equivalence_p() if equivalence_p is None else equivalence_p) < 0.05:
            return "equivalent"
        return "no significant difference"

    def to_json(self) -> dict[str, Any]:
        """JSON-able values."""
        # Records have called the second one "narrow" from the beginning.
        found = {
            "interval": self.interval,
            "narrow": self.interval_90,
            "over_seeds": self.over_seeds,
            "over_tasks": self.over_tasks,
        }
        intervals = {name: interval and interval.to_json() for name, interval in found.items()}
        return {"mean": self.mean, "p_value": self.p_value, "equivalence_p": self.equivalence_p(), **intervals}

    def _beyond(self, statistic: float) -> float:
        """Probability of more than this statistic, by chance alone."""
        tail = t_p_value(abs(statistic), self.freedom) / 2
        return tail if statistic > 0 else 1.0 - tail

    def _within(self, quantile: float) -> Interval:
        half = t_quantile(quantile, self.freedom) * self.error
        return Interval(max(-1.0, self.mean - half), min(1.0, self.mean + half))  # two rates differ by no more


def mean_difference(pairs: Sequence[tuple[Sequence[float], Sequence[float]]]) -> Difference:
    """The mean difference, with its error, of seeds' pairs of rows: one value per task, in the same order in all.

    Where nothing varied at all, the error is what a single episode that differs would make.
    """
    table = [[a - b for a, b in zip(own, other, strict=True)] for own, other in pairs]
    by_seed = [fmean(row) for row in table]
    total, freedom = noise_of_mean(table)
    total = total or 1.0  # one seed and one value say nothing
    return Difference(
        mean=fmean(by_seed),
        error=math.sqrt(total),
        freedom=freedom,
        seeds=len(pairs),
        over_seeds=mean_over_seeds(by_seed).interval,
        over_tasks=mean_over_seeds([fmean(column) for column in zip(*table, strict=True)]).interval,
        by_seed=tuple(by_seed),
    )


def sign_flip_p(differences: Sequence[float]) -> float:
    """Two-sided p-value of no difference: the sign-flip test on the seeds' differences (Fisher 1935).

    It assumes no normal distribution, and where only some runs take off there is none. With n seeds it is at least
    2 / 2^n. Up to 20 seeds every change of signs is counted, beyond that 100,000 drawn ones.
    """
    values = np.abs(differences)
    sums = np.zeros(1)
    if len(values) <= 20:
        for value in values:
            sums = np.concatenate([sums + value, sums - value])
    else:
        drawn = np.random.default_rng(0).choice([-1.0, 1.0], (100_000, len(values))) @ values
        sums = np.append(drawn, sum(differences))  # the differences themselves are one of the changes
    return float(np.mean(np.abs(sums) >= abs(sum(differences)) - 1e-9))


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Holm's step-down adjustment of several p-values (Holm 1979, Scandinavian Journal of Statistics 6)."""
    adjusted: dict[str, float] = {}
    highest = 0.0
    for rank, name in enumerate(sorted(p_values, key=lambda name: p_values[name])):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[name]))
        adjusted[name] = highest
    return {name: adjusted[name] for name in p_values}
