"""Training rows: what an optimiser step sees of a trajectory, with advantages and one weight per loss.

Figures per token have one index: the own tokens of a trajectory, all its rows one after the other. A row holds its
part of them; :meth:`trainers.rollout.batches.Tokens.place` puts them into the columns of a micro-batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from trainers.advantages import FloatArray, Values
from trainers.base import Aggregation, MaskTruncated, TokenRow, Trajectory


@dataclass(frozen=True)
class TrainingRow:
    """A row with its share of the objective.

    Attributes:
        row: The tokens.
        advantages: One per own token, float64[row.model_tokens].
        weights: Weight of each own token in each loss that acts on the row, by the loss's name; none for padding.
        trajectory: Number of the rollout in the process's part of the update; -1 for a row of another origin.
        task_type: Type of its task, from which a teacher's skill is chosen.
        targets: Further figures per own token that a loss asked for, by name.
        teachers: The same completion behind another prompt, for losses in which a teacher scores it, by their names.
    """

    row: TokenRow
    advantages: FloatArray
    weights: Mapping[str, float]
    trajectory: int
    task_type: str = ""
    targets: Mapping[str, FloatArray] = field(default_factory=dict)
    teachers: Mapping[str, TokenRow] = field(default_factory=dict)

    def figure(self, name: str) -> FloatArray:
        """A target of the row, 0 where it has none of that name."""
        return self.targets.get(name, np.zeros(self.row.model_tokens))


def token_weight(share: float, factor: float) -> float:
    """Weight of an own token in a loss: its share in the update, times by how much the loss acts on its rollout.

    The one place where weights are made. Both have the precision of the tensors, so that a weight is the same number
    wherever it was made.
    """
    return float(np.float32(share) * np.float32(factor))


def split_minibatches(rollouts: int, count: int, seed: int) -> Iterator[list[int]]:
    """Splits an update's rollouts into its optimiser steps, at random if there are several.

    Args:
        rollouts: Number of rollouts.
        count: Number of optimiser steps.
        seed: Seed of the order.

    Yields:
        The rollouts of each optimiser step; sizes differ by at most one.
    """
    order = np.arange(rollouts) if count == 1 else np.random.default_rng(seed).permutation(rollouts)
    yield from ([int(i) for i in part] for part in np.array_split(order, count))


def make_training_rows(
    trajectories: Sequence[Trajectory],
    advantages: Values | Sequence[float],
    which: Sequence[int],
    aggregation: Aggregation,
    *,
    total: int,
    tokens: int,
    longest: int = 1,
    factors: Sequence[Mapping[str, float]] | None = None,
    targets: Mapping[str, Values] | None = None,
) -> list[TrainingRow]:
    """Makes the rows of some rollouts, with the weight of their tokens in the objective.

    Args:
        trajectories: The process's rollouts of the update.
        advantages: One number, or one array per own token, for each.
        which: The rollouts of this optimiser step.
        aggregation: "trajectory": each counts ``1/T_i``, T_i its own tokens over all its rows; "token": all tokens
            of the step count alike; "constant": all tokens count ``1/longest`` of a trajectory.
        total: Rollouts of this optimiser step over all processes.
        tokens: Own tokens of this optimiser step over all processes.
        longest: Most own tokens that a trajectory can have.
        factors: By how much each loss acts on each rollout; the policy gradient alone by default.
        targets: Further figures in the same form as the advantages, by name.
    """
    made = []
    for i in which:
        trajectory = trajectories[i]
        own = trajectory.model_tokens
        shared_by = {"trajectory": total * own or tokens, "token": tokens, "constant": total * longest}[aggregation]
        acting = factors[i] if factors else {"policy": 1.0}
        weights = {name: token_weight(1.0 / max(shared_by, 1), factor) for name, factor in acting.items() if factor}
        values = np.broadcast_to(np.asarray(advantages[i], dtype=np.float64), own)
        figures = {name: np.asarray(of_all[i], dtype=np.float64) for name, of_all in (targets or {}).items()}
        for row, part in trajectory.own_rows():
            cut = {name: np.broadcast_to(figure, own)[part] for name, figure in figures.items()}
            made.append(TrainingRow(row, values[part], weights, i, trajectory.episode.task_type, cut))
    return made


def is_masked(trajectory: Trajectory, which: MaskTruncated) -> bool:
    """Whether a trajectory teaches the policy nothing because it was cut: by the context, or by any limit."""
    episode = trajectory.episode
    return (which == "all" and episode.truncated) or (which == "context" and episode.cut == "context")


def padding_row() -> TrainingRow:
    """A row that weighs nothing."""
    return TrainingRow(TokenRow([0], [0], [1], [0.0], (1,)), np.zeros(1), {}, -1)
