"""Won episodes as rows that are imitated behind the prompt without the skill."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trainers.advantages import FloatArray, relabelling_weights
from trainers.recipes.parts.rows import RowMaker, UpdateView
from trainers.rollout.training_rows import TrainingRow

__all__ = ["RelabelledRows", "WonRows"]


@dataclass(frozen=True)
class RelabelledRows(RowMaker):
    """Rows for :class:`trainers.losses.relabelling.Relabelling`, weighed by :func:`relabelling_weights`.

    Attributes:
        only_blind: Only for tasks of which no skill-free rollout of the update succeeded.
        most: Largest number of relabelled episodes, as a share of the update's.
        discounted: Whether an episode weighs less, the more often its task is won without the skill.
    """

    name: ClassVar[str] = "relabelled_rows"
    needs_comparison: ClassVar[bool] = True
    only_blind: bool = False
    most: float = 0.5
    discounted: bool = True

    def __call__(self, update: UpdateView) -> list[TrainingRow]:
        """This process's relabelled rows."""
        weights = self.weights(update)
        number = {i: place for place, i in enumerate(update.own)}
        return [row for i in update.own if weights[i] for row in _rows(update, i, number[i], float(weights[i]))]

    def weights(self, update: UpdateView) -> FloatArray:
        """Weight of every rollout of the update, float64[N]; the same on all processes."""
        batch = update.batch
        weights = relabelling_weights(
            batch.success, batch.task, batch.condition, batch.signals.contrast, discounted=self.discounted
        )
        if self.only_blind:
            seen = {
                task for task, z, won in zip(batch.task, batch.condition, batch.success, strict=True) if won and not z
            }
            weights = np.where([task in seen for task in batch.task], 0.0, weights)
        order = np.argsort(-weights, kind="stable")
        weights[order[int(self.most * len(weights)) :]] = 0.0
        return weights


@dataclass(frozen=True)
class WonRows(RowMaker):
    """Every won episode at full weight, in whichever condition it was played."""

    name: ClassVar[str] = "won_rows"

    def __call__(self, update: UpdateView) -> list[TrainingRow]:
        """This process's won episodes."""
        won = np.asarray(update.batch.success) > 0
        return [row for place, i in enumerate(update.own) if won[i] for row in _rows(update, i, place, 1.0)]


def _rows(update: UpdateView, i: int, place: int, weight: float) -> list[TrainingRow]:
    trajectory = update.batch.trajectories[i]
    weights = {"relabelling": update.weight(i, weight)}
    return [
        TrainingRow(
            row=update.prompts.with_skill_text(row, ""),
            advantages=np.zeros(row.model_tokens),
            weights=weights,
            trajectory=place,
            task_type=trajectory.episode.task_type,
        )
        for row in trajectory.rows
    ]
