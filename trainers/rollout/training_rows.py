"""Training rows: what of a trajectory an optimiser step sees, with advantages, weight and the losses that act on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from trainers.advantages import FloatArray, Values
from trainers.base import Aggregation, MaskTruncated, TokenRow, Trajectory

__all__ = [
    "TrainingRow",
    "deal",
    "forward_passes",
    "masked",
    "padding_row",
    "split_by_row",
    "weigh",
]


@dataclass(frozen=True)
class TrainingRow:
    """A row with its share of the objective.

    Attributes:
        row: The tokens.
        advantages: One per own token, float64[row.model_tokens].
        weight: Factor of every own token of the row; 0 for padding.
        trajectory: Number of the rollout in the process's part of the update; -1 for a row of another origin.
        losses: Factor of each loss that acts on the row, by the loss's name.
        task_type: Type of its task, from which a teacher's skill is chosen.
        teacher_text: Skill text in the teacher's prompt; None for what the teacher says itself.
        targets: Further figures per own token that a loss asked for, by name.
    """

    row: TokenRow
    advantages: FloatArray
    weight: float
    trajectory: int
    losses: Mapping[str, float] = field(default_factory=dict)
    task_type: str = ""
    teacher_text: str | None = None
    targets: Mapping[str, FloatArray] = field(default_factory=dict)


def deal(rollouts: int, count: int, seed: int) -> Iterator[list[int]]:
    """Deals an update's rollouts to its optimiser steps, at random if there are several.

    Args:
        rollouts: Number of rollouts.
        count: Number of optimiser steps.
        seed: Seed of the order.

    Yields:
        The rollouts of each optimiser step; sizes differ by at most one.
    """
    order = np.arange(rollouts) if count == 1 else np.random.default_rng(seed).permutation(rollouts)
    yield from ([int(i) for i in part] for part in np.array_split(order, count))


def split_by_row(trajectory: Trajectory, values: float | FloatArray) -> list[FloatArray]:
    """One array per row with an entry per own token: a number is spread, an array per own token is cut."""
    sizes = [row.model_tokens for row in trajectory.rows]
    if np.ndim(values) == 0:
        return [np.full(size, values, dtype=np.float64) for size in sizes]
    return np.split(np.asarray(values, dtype=np.float64), np.cumsum(sizes)[:-1])


def weigh(
    trajectories: Sequence[Trajectory],
    advantages: Values | Sequence[float],
    which: Sequence[int],
    aggregation: Aggregation,
    *,
    total: int,
    tokens: int,
    longest: int = 1,
    losses: Sequence[Mapping[str, float]] | None = None,
    targets: Mapping[str, Values] | None = None,
) -> list[TrainingRow]:
    """Gives each row of some rollouts the weight of its tokens in the objective.

    Args:
        trajectories: The process's rollouts of the update.
        advantages: One number, or one array per own token, for each.
        which: The rollouts of this optimiser step.
        aggregation: "trajectory": each counts ``1/T_i``, T_i its own tokens over all its rows; "token": all tokens
            of the step count alike; "constant": all tokens count ``1/longest`` of a trajectory.
        total: Rollouts of this optimiser step over all processes.
        tokens: Own tokens of this optimiser step over all processes.
        longest: Most own tokens that a trajectory can have.
        losses: Factors of the losses on each rollout; the policy gradient alone by default.
        targets: Further figures in the same form as the advantages, by name.
    """
    weighted = []
    for i in which:
        trajectory = trajectories[i]
        own = trajectory.model_tokens
        shared_by = {"trajectory": total * own or tokens, "token": tokens, "constant": total * longest}[aggregation]
        share = 1.0 / max(shared_by, 1)
        parts = split_by_row(trajectory, advantages[i])
        named = {name: split_by_row(trajectory, values[i]) for name, values in (targets or {}).items()}
        for k, (row, part) in enumerate(zip(trajectory.rows, parts, strict=False)):
            figures = {name: by_row[k] for name, by_row in named.items()}
            acting = losses[i] if losses else {"policy": 1.0}
            weighted.append(TrainingRow(row, part, share, i, acting, trajectory.episode.task_type, targets=figures))
    return weighted


def masked(trajectory: Trajectory, which: MaskTruncated) -> bool:
    """Whether a trajectory teaches the policy nothing because it was cut: by the context, or by any limit."""
    episode = trajectory.episode
    return (which == "all" and episode.truncated) or (which == "context" and episode.cut == "context")


def forward_passes(rows: Sequence[TrainingRow], count: int) -> list[list[TrainingRow]]:
    """Deals rows to a fixed number of forward passes, similar lengths together and about as many tokens in each.

    A pass without rows gets one of padding, so that all processes take part in every pass.
    """
    ordered = sorted(rows, key=lambda weighted: (weighted.row.length, weighted.trajectory))
    ends = np.cumsum([weighted.row.length for weighted in ordered])
    total = ends[-1] if len(ends) else 0
    batches: list[list[TrainingRow]] = [[] for _ in range(count)]
    for weighted, end in zip(ordered, ends, strict=True):
        middle = end - weighted.row.length / 2
        batches[min(count - 1, int(middle * count / total))].append(weighted)
    return [batch or [padding_row()] for batch in batches]


def padding_row() -> TrainingRow:
    """A row that weighs nothing."""
    return TrainingRow(TokenRow([0], [0], [1], [0.0], (1,)), np.zeros(1), 0.0, -1)
