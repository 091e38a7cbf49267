"""How often a comparison's intervals hold the truth, and which differences they can see, in simulated tables.

    python -m benchmarks.interval_coverage --out benchmarks/records/interval_coverage.json

Outcomes are drawn from logistic models: tasks differ in difficulty, a method in what it makes of a task, a seed in how
well it trains. Beside them stands the case that such a model lacks: a baseline of which some runs take off and others
do not.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from statistics import median
from typing import Any

import numpy as np

from benchmarks.measuring import measurement, options_parser
from trainers.stats import t_quantile, variance_of_mean

_TASKS, _TABLES = 144, 500


@dataclass(frozen=True)
class Setting:
    """What a table is drawn from.

    Attributes:
        seeds: Runs of each method.
        rate: Success of both methods at a task of middling difficulty.
        between_seeds: Standard deviation over a method's seeds, in log-odds.
        between_tasks: That of a method's own strengths over tasks.
    """

    seeds: int
    rate: float
    between_seeds: float
    between_tasks: float

    def draw(self, rng: np.random.Generator, shift: float = 0.0) -> np.ndarray:
        """Differences of outcomes, ``[seeds, tasks]``; ``shift`` is the first method's lead in log-odds."""
        difficulty = rng.normal(0.0, 1.5, _TASKS)
        centre = math.log(self.rate / (1 - self.rate))
        outcomes = [self._outcomes(rng, centre + lead + difficulty) for lead in (shift, 0.0)]
        return np.asarray(outcomes[0] - outcomes[1])

    def _outcomes(self, rng: np.random.Generator, odds: np.ndarray) -> np.ndarray:
        own = odds + rng.normal(0.0, self.between_tasks, _TASKS)
        odds = own[None] + rng.normal(0.0, self.between_seeds, self.seeds)[:, None]
        return (rng.random(odds.shape) < 1 / (1 + np.exp(-odds))).astype(np.float64)


SETTINGS = tuple(
    Setting(seeds, *spread)
    for seeds in (2, 3, 5)
    for spread in (
        (0.5, 0.0, 0.0),
        (0.5, 0.3, 0.7),
        (0.5, 0.6, 0.7),
        (0.2, 0.5, 0.7),
        (0.03, 0.0, 0.0),
        (0.03, 0.5, 0.7),
    )
)


def coverage(setting: Setting, tables: int = _TABLES) -> dict[str, float]:
    """Share of 95 % intervals that hold the difference of two equal methods, and their median half width."""
    rng = np.random.default_rng(0)
    halves, held = [], 0
    for _ in range(tables):
        table = setting.draw(rng)
        half = _half_width(table)
        held += abs(float(table.mean())) <= half
        halves.append(half)
    return {"coverage": held / tables, "half_width": median(halves)}


def power(setting: Setting, tables: int = _TABLES // 4, wanted: float = 0.8) -> float | None:
    """The smallest mean difference that so many intervals tell from 0; None if six log-odds are not enough."""
    low, high = 0.0, 6.0
    if _seen(setting, high, tables)[0] < wanted:
        return None
    while high - low > 0.05:
        middle = (low + high) / 2
        low, high = (low, middle) if _seen(setting, middle, tables)[0] >= wanted else (middle, high)
    return _seen(setting, high, tables)[1]


def _seen(setting: Setting, shift: float, tables: int) -> tuple[float, float]:
    """Share of tables whose interval excludes 0, and their mean difference."""
    rng = np.random.default_rng(1)
    drawn = [setting.draw(rng, shift) for _ in range(tables)]
    excluded = [abs(float(table.mean())) > _half_width(table) for table in drawn]
    return sum(excluded) / tables, float(np.mean(drawn))


def _half_width(table: np.ndarray) -> float:
    total, freedom = variance_of_mean(table.tolist())
    return _quantile(freedom) * math.sqrt(total)


@cache
def _quantile(freedom: int) -> float:
    return t_quantile(0.975, freedom)


@dataclass(frozen=True)
class TakingOff:
    """A steady method beside one whose runs either take off or do not, as GRPO's do on the real games.

    Attributes:
        seeds: Runs of each method.
        share: Of the second method's runs that take off.
        steady: Success of the first method's runs.
        low: Success of the second method's runs that do not take off.
        high: Success of those that do.
    """

    seeds: int
    share: float
    steady: float = 0.85
    low: float = 0.15
    high: float = 0.7

    def coverage(self, tables: int = 4 * _TABLES) -> float:
        """Share of 95 % intervals that hold the true difference."""
        rng = np.random.default_rng(2)
        truth = self.steady - self.low - self.share * (self.high - self.low)
        drawn = [self._draw(rng) for _ in range(tables)]
        return sum(abs(float(table.mean()) - truth) <= _half_width(table) for table in drawn) / tables

    def _draw(self, rng: np.random.Generator) -> np.ndarray:
        rates = np.where(rng.random(self.seeds) < self.share, self.high, self.low)
        steady = rng.random((self.seeds, _TASKS)) < self.steady
        return steady.astype(np.float64) - (rng.random((self.seeds, _TASKS)) < rates[:, None])


TAKING_OFF = tuple(TakingOff(seeds, share) for seeds in (5, 8, 12) for share in (0.2, 0.5))


def _measure(options: argparse.Namespace) -> dict[str, Any]:
    rows = [{**asdict(each), **coverage(each), "visible": power(each)} for each in SETTINGS]
    taking_off = [{**asdict(each), "coverage": each.coverage()} for each in TAKING_OFF]
    return {"tables": _TABLES, "tasks": _TASKS, "rows": rows, "taking_off": taking_off}


def main(words: Sequence[str] | None = None) -> int:
    """Draws the tables; returns 2 where that was refused."""
    return measurement(options_parser(__doc__), _measure, words)


if __name__ == "__main__":
    sys.exit(main())
