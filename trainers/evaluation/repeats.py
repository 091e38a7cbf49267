"""Several episodes per task: the chance that at least one of k succeeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import comb
from statistics import fmean
from typing import Any

from skillc_gym.errors import ConfigError
from trainers.evaluation.outcomes import PairedOutcome
from trainers.stats import bootstrap_mean

__all__ = ["pass_at_k", "pass_rates"]


def pass_at_k(successes: int, n: int, k: int) -> float:
    """The unbiased estimate of the chance that at least one of ``k`` episodes succeeds.

    ``1 - C(n - c, k) / C(n, k)`` for c successes in n episodes (Chen et al. 2021, arXiv 2107.03374, equation 1).

    Raises:
        ConfigError: More successes or a larger k than there are episodes.
    """
    if not 0 <= successes <= n or not 1 <= k <= n:
        raise ConfigError(f"pass@k needs 0 <= successes <= n and 1 <= k <= n, got {successes} of {n} and k={k}")
    return 1.0 - comb(n - successes, k) / comb(n, k)


def pass_rates(outcomes: Iterable[PairedOutcome], attempts: int) -> dict[str, dict[str, Any]]:
    """pass@k with and without the skill for k = 1, 2, 4, ... and all attempts, averaged over tasks.

    Args:
        outcomes: Every task as often as there are attempts.
        attempts: Pairs per task.

    Returns:
        By k (as text, as JSON has it): for each condition its rate and a 95 % bootstrap interval over tasks.
    """
    wins = _wins(outcomes)
    return {
        str(k): {arm: _rate([pass_at_k(won, attempts, k) for won in counts]) for arm, counts in wins.items()}
        for k in _ks(attempts)
    }


def _ks(attempts: int) -> Sequence[int]:
    return [*(2**i for i in range(attempts.bit_length()) if 2**i < attempts), attempts]


def _wins(outcomes: Iterable[PairedOutcome]) -> Mapping[str, Sequence[int]]:
    with_: dict[str, int] = {}
    without: dict[str, int] = {}
    for outcome in outcomes:
        with_[outcome.task_id] = with_.get(outcome.task_id, 0) + outcome.with_skill.won
        without[outcome.task_id] = without.get(outcome.task_id, 0) + outcome.without_skill.won
    return {"with": list(with_.values()), "without": list(without.values())}


def _rate(values: Sequence[float]) -> dict[str, Any]:
    return {"rate": fmean(values), "interval": bootstrap_mean(values, seed=0, resamples=2_000).to_json()}
