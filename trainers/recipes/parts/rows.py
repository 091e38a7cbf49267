"""Row makers: what a recipe trains on beside the update's own rollouts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from trainers.advantages import Advantages, RolloutBatch
from trainers.base import Options
from trainers.rollout.rows import Prompts
from trainers.rollout.training_rows import TrainingRow, token_weight

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
        minibatches: Optimiser steps of the update.
    """

    batch: RolloutBatch
    advantages: Advantages
    own: Sequence[int]
    prompts: Prompts
    update: int
    seed: int
    minibatches: int = 1

    def weight(self, rollout: int, factor: float = 1.0) -> float:
        """Weight of an own token of a rollout in a loss that acts on it by some factor.

        Its share is ``1 / (N T)`` for one of N rollouts with T own tokens, so that those of an update sum to the
        rollouts' share in it, whatever step it is trained in.
        """
        share = 1.0 / (len(self.batch.trajectories) * max(1, self.batch.trajectories[rollout].model_tokens))
        return token_weight(share * self.minibatches if self.minibatches > 1 else share, factor)


class RowMaker(Options):
    """Base of a row maker: a frozen dataclass of its options."""

    name: ClassVar[str]
    needs_comparison: ClassVar[bool] = False
    """Whether it makes rows only where both conditions are played beside each other."""

    def __call__(self, update: UpdateView) -> list[TrainingRow]:
        """Makes this process's rows.

        A row names the losses that act on it, and its tokens' weight in each: see :meth:`UpdateView.weight`. A row for
        a loss with a teacher may bring the row that the teacher reads; without, the loss's own prompt is rendered.
        """
        raise NotImplementedError
