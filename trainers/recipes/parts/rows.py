"""Row makers: what a recipe trains on beside the update's own rollouts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from trainers.advantages import Advantages, RolloutBatch
from trainers.base import Options
from trainers.rollout.prompts import Prompts
from trainers.rollout.training_rows import TrainingRow

__all__ = ["RowMaker", "UpdateView"]


@dataclass(frozen=True)
class UpdateView:
    """An update as a row maker sees it.

    Attributes:
        batch: All processes' trajectories, with the method's signals.
        advantages: What the scheme made of them.
        own: Numbers of the rollouts whose rows this process trains on.
        prompts: Renders rows behind other prompts.
        update: Number of the update, from 1.
        seed: The run's seed.
    """

    batch: RolloutBatch
    advantages: Advantages
    own: Sequence[int]
    prompts: Prompts
    update: int
    seed: int


class RowMaker(Options):
    """Base of a row maker: a frozen dataclass of its options."""

    name: ClassVar[str]
    needs_comparison: ClassVar[bool] = False
    """Whether it makes rows only where both conditions are played beside each other."""

    def __call__(self, update: UpdateView) -> list[TrainingRow]:
        """Makes this process's rows.

        A row names the losses that act on it. Its weight is its own tokens' share in a whole update over all processes,
        ``1 / (N T)`` for one of N trajectories with T own tokens; the learner adapts it to several optimiser steps.
        """
        raise NotImplementedError
