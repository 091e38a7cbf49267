"""What one update shows of the skills' worth: mean return with the skill minus mean return without it."""

from __future__ import annotations

from collections import defaultdict
from typing import Literal

from trainers.advantages.batch import RolloutBatch
from trainers.advantages.grouping import mean

__all__ = ["ContrastKey", "paired_contrasts", "unpaired_contrasts"]

ContrastKey = Literal["type", "task"]


def paired_contrasts(batch: RolloutBatch, key: ContrastKey) -> dict[str, float]:
    """``c(x) = mean R(z=1) - mean R(z=0)`` per task that has both branches, averaged over the tasks of a key.

    Args:
        batch: One update's rollouts.
        key: Average over the tasks of a type, or keep each task apart.

    Returns:
        One value per key seen in both conditions; the order of the batch does not matter.
    """
    by_key: dict[str, list[float]] = defaultdict(list)
    for task, contrast in _contrasts(batch, batch.task).items():
        by_key[task if key == "task" else batch.type_of[task]].append(contrast)
    return {name: mean(values) for name, values in sorted(by_key.items())}


def unpaired_contrasts(batch: RolloutBatch) -> dict[str, float]:
    """The same difference per task type between *different* tasks: all that is left where groups are not paired."""
    return dict(sorted(_contrasts(batch, batch.task_type).items()))


def _contrasts(batch: RolloutBatch, keys: tuple[str, ...]) -> dict[str, float]:
    returns: dict[str, tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    for name, condition, value in zip(keys, batch.condition.tolist(), batch.outcome.tolist(), strict=True):
        returns[name][int(condition)].append(value)
    return {name: mean(with_) - mean(without) for name, (without, with_) in returns.items() if with_ and without}
