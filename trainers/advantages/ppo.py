"""PPO's advantage with a critic: GAE over an episode's tokens, whitened over the update."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trainers.advantages.base import Advantages, Scheme
from trainers.advantages.batch import RolloutBatch
from trainers.advantages.gae import gae
from trainers.advantages.grouping import FloatArray
from trainers.advantages.whitening import whiten

__all__ = ["SCHEME", "Ppo"]


@dataclass(frozen=True)
class Ppo(Scheme):
    """One value per token; the episode's return stands on its last token.

    The figure ``values`` per own token is the critic's. With the defaults the advantage is the return minus the value,
    the same whether an episode is one sequence or one per step.

    Attributes:
        gamma: Discount per token.
        gae_lambda: 0 trusts the critic, 1 the return.
        whitening: Whether advantages get mean 0 and variance 1 over the update's tokens.
    """

    name: ClassVar[str] = "ppo"
    inputs: ClassVar[frozenset[str]] = frozenset({"values"})
    gamma: float = 1.0
    gae_lambda: float = 1.0
    whitening: bool = True

    def __call__(self, batch: RolloutBatch) -> Advantages:
        """The advantages, and ``value_targets`` and ``old_values`` for the value loss."""
        values = [np.asarray(own, dtype=np.float64) for own in batch.scores["values"]]
        plain = [
            gae(_on_the_last(own.size, float(reward)), own, self.gamma, self.gae_lambda)
            for own, reward in zip(values, batch.returns, strict=True)
        ]
        targets = [own + advantage for own, advantage in zip(values, plain, strict=True)]
        return Advantages(
            tuple(whiten(plain) if self.whitening else plain),
            targets={"value_targets": tuple(targets), "old_values": tuple(values)},
            log={"explained_variance": _explained(np.concatenate(targets), np.concatenate(values))},
        )


def _on_the_last(size: int, value: float) -> FloatArray:
    rewards = np.zeros(size)
    rewards[-1:] = value
    return rewards


def _explained(targets: FloatArray, values: FloatArray) -> float | None:
    """Share of the targets' variance that the values explain; None where the targets do not vary."""
    spread = float(targets.var()) if targets.size else 0.0
    return 1.0 - float((targets - values).var()) / spread if spread > 0 else None


SCHEME = Ppo
