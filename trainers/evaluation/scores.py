"""Mean scores, where an environment gives more than yes or no: over all tasks, and over those that can be solved."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from trainers.evaluation.outcomes import PairedOutcome
from trainers.stats import bootstrap_mean

__all__ = ["graded", "mean_scores"]


def graded(outcomes: Sequence[PairedOutcome]) -> bool:
    """Whether the environment gives scores of its own: some that are neither 0 nor 1, or known best ones."""
    return any(
        outcome.best_score is not None or any(outcome.arm(skill).score not in (0.0, 1.0) for skill in (True, False))
        for outcome in outcomes
    )


def mean_scores(outcomes: Sequence[PairedOutcome]) -> dict[str, Any]:
    """Mean score in both conditions, with 95 % bootstrap intervals over tasks.

    Returns:
        ``"all"``: tasks, and per condition mean and interval; ``"reachable"``: the same over the tasks whose best known
        score is 1, None if the environment says of no task what is within reach.
    """
    known = [outcome for outcome in outcomes if outcome.best_score is not None]
    reachable = [outcome for outcome in known if outcome.best_score == 1.0]
    return {"all": _means(outcomes), "reachable": _means(reachable) if known else None}


def _means(outcomes: Sequence[PairedOutcome]) -> dict[str, Any]:
    by_task: dict[str, list[PairedOutcome]] = {}
    for outcome in outcomes:
        by_task.setdefault(outcome.task_id, []).append(outcome)
    return {"tasks": len(by_task), "with": _mean(by_task, skill=True), "without": _mean(by_task, skill=False)}


def _mean(by_task: dict[str, list[PairedOutcome]], *, skill: bool) -> dict[str, Any] | None:
    values = [fmean(outcome.arm(skill).score for outcome in found) for found in by_task.values()]
    if not values:
        return None
    return {"mean": fmean(values), "interval": bootstrap_mean(values, seed=0, resamples=2_000).to_json()}
