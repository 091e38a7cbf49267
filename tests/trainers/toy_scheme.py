"""A method in one file: its advantages look at observations and differ from token to token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trainers.advantages import Advantages, FloatArray, RolloutBatch, Scheme, grpo
from trainers.recipes import Recipe


@dataclass(frozen=True)
class Novelty(Scheme):
    """The group advantage, less a fee for every turn whose observation the episode had shown before."""

    name: ClassVar[str] = "novelty"
    fee: float = 0.25

    def __call__(self, batch: RolloutBatch) -> Advantages:
        outcome = grpo(batch.returns, batch.task)
        per_turn = [value - self.fee * repeats(i, batch) for i, value in enumerate(outcome)]
        repeated = float(np.mean([repeats(i, batch).mean() for i in range(len(outcome))]))
        lengths = [trajectory.reply_lengths for trajectory in batch.trajectories]
        per_token = tuple(np.repeat(turns, tokens) for turns, tokens in zip(per_turn, lengths, strict=True))
        return Advantages(per_token, log={"repeated_observations": repeated})


def repeats(i: int, batch: RolloutBatch) -> FloatArray:
    seen = [turn.observation for turn in batch.trajectories[i].episode.turns]
    return np.array([float(observation in seen[:k]) for k, observation in enumerate(seen)])


RECIPE = Recipe(name="novelty", summary="Rewards seeing new things.", advantage=Novelty())
