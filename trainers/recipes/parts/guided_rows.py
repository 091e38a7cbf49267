"""Won guided episodes behind the usual prompt, taught by the guided one: Skill0.5's internalisation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trainers.advantages.group_baselines import is_guided
from trainers.memory import specific_text
from trainers.recipes.parts.rows import RowMaker, UpdateView
from trainers.rollout.training_rows import TrainingRow

__all__ = ["GuidedRows"]


@dataclass(frozen=True)
class GuidedRows(RowMaker):
    """Rows for :class:`trainers.losses.distribution_distillation.GuidedDistillation`."""

    name: ClassVar[str] = "guided_rows"

    def __call__(self, update: UpdateView) -> list[TrainingRow]:
        """This process's won guided episodes."""
        return [row for place, i in enumerate(update.own) for row in _rows(update, i, place)]


def _rows(update: UpdateView, i: int, place: int) -> list[TrainingRow]:
    trajectory = update.batch.trajectories[i]
    episode, library = trajectory.episode, update.prompts.library
    if library is None or not episode.won or not is_guided(episode.skill):
        return []
    usual = specific_text(library, episode.task_type).text
    return [
        TrainingRow(
            row=update.prompts.with_skill_text(row, usual),
            advantages=np.zeros(row.model_tokens),
            weights={"guided_distillation": update.weight(i)},
            trajectory=place,
            task_type=episode.task_type,
            teachers={"guided_distillation": update.prompts.with_skill_text(row, episode.skill_text)},
        )
        for row in trajectory.rows
    ]
