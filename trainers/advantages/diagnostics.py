"""What an update's advantages really did, in numbers for the log (method, section 3, last paragraph)."""

from __future__ import annotations

from typing import Any

import numpy as np

from trainers.advantages.base import RolloutBatch
from trainers.advantages.grouping import FloatArray

__all__ = ["advantage_diagnostics"]


def advantage_diagnostics(batch: RolloutBatch, advantage: FloatArray) -> dict[str, Any]:
    """Summarises one update; JSON-able, None where there is nothing to average.

    Args:
        batch: The update's rollouts.
        advantage: One number per rollout, float64[N].

    Returns:
        ``advantage_mean`` by condition and outcome, ``failed_with_positive_advantage`` (share of the failed rollouts
        that are reinforced), and per task type ``n_plus`` (mean number of skill-injected rollouts per task) and
        ``rollout_fraction_with``.
    """
    with_, won = batch.condition, batch.success
    return {
        "advantage_mean": {
            "with_success": _mean_where(advantage, with_ & won),
            "with_failure": _mean_where(advantage, with_ & ~won),
            "without_success": _mean_where(advantage, ~with_ & won),
            "without_failure": _mean_where(advantage, ~with_ & ~won),
        },
        "failed_with_positive_advantage": _mean_where((advantage > 0).astype(np.float64), ~won),
        "n_plus": _n_plus(batch),
        "rollout_fraction_with": _fraction_with(batch),
    }


def _mean_where(values: FloatArray, where: np.ndarray) -> float | None:
    return float(values[where].mean()) if where.any() else None


def _n_plus(batch: RolloutBatch) -> dict[str, float]:
    tasks = {kind: sum(1 for other in batch.type_of.values() if other == kind) for kind in batch.task_type}
    return {kind: float(batch.condition[_is(batch, kind)].sum()) / count for kind, count in sorted(tasks.items())}


def _fraction_with(batch: RolloutBatch) -> dict[str, float]:
    return {kind: float(batch.condition[_is(batch, kind)].mean()) for kind in sorted(set(batch.task_type))}


def _is(batch: RolloutBatch, kind: str) -> np.ndarray:
    return np.asarray([other == kind for other in batch.task_type])
