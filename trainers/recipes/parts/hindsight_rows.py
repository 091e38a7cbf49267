"""Rollouts whose teacher reads a skill that was written from how the episode went (OPID, arXiv 2606.26790)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skillc_gym.episodes import Episode
from trainers.recipes.parts.rows import RowMaker, UpdateView
from trainers.rollout.training_rows import TrainingRow
from trainers.writers import StepWriter

__all__ = ["HindsightRows"]


@dataclass(frozen=True)
class HindsightRows(RowMaker):
    """The update's own rollouts with a teacher's text each, in place of those without.

    A won episode's text is its own steps; a lost one's are those of the won episodes of its task in this update, or of
    its task type if there are none. Where nobody won, the teacher reads what the student reads. The paper lets a
    language model write, for the episode and for up to five single steps.

    Attributes:
        least: Share of the won episodes that must have taken a step.
    """

    name: ClassVar[str] = "hindsight_rows"
    least: float = 0.6

    def __call__(self, update: UpdateView) -> list[TrainingRow]:
        """This process's rows, each with the policy gradient acting on it."""
        episodes = [trajectory.episode for trajectory in update.batch.trajectories]
        writer = StepWriter(self.least)
        return [
            row
            for place, i in enumerate(update.own)
            for row in _rows(update, i, place, _lesson(writer, episodes[i], episodes))
        ]


def _lesson(writer: StepWriter, episode: Episode, everyone: Sequence[Episode]) -> str:
    if episode.won:
        chosen = [episode]
    else:
        won = [other for other in everyone if other.won and other.task_type == episode.task_type]
        chosen = [other for other in won if other.task_id == episode.task_id] or won
    drafts = writer.write([*chosen, *([] if episode.won else [episode])]) if chosen else []
    return drafts[0].text if drafts else ""


def _rows(update: UpdateView, i: int, place: int, text: str) -> list[TrainingRow]:
    trajectory = update.batch.trajectories[i]
    advantages = np.broadcast_to(np.asarray(update.advantages.values[i], dtype=np.float64), trajectory.model_tokens)
    return [
        TrainingRow(
            row=row,
            advantages=advantages[own],
            weights={"policy": update.weight(i)},
            trajectory=place,
            task_type=trajectory.episode.task_type,
            teachers={"policy": update.prompts.with_skill_text(row, text)},
        )
        for row, own in trajectory.own_rows()
    ]
