"""Advantages from a critic: generalised estimation, and PPO."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from skillc_gym.errors import ConfigError
from trainers.advantages.base import Advantages, RolloutBatch, Scheme
from trainers.advantages.grouping import FloatArray, finite_vector, whiten

__all__ = ["Ppo", "discounted_returns", "gae"]


# Generalised advantage estimation (Schulman et al. 2016, arXiv 1506.02438) and discounted returns.


def gae(rewards: ArrayLike, values: ArrayLike, gamma: float = 1.0, lam: float = 1.0) -> FloatArray:
    """``A_t = sum_k (gamma lam)^k (r_{t+k} + gamma V_{t+k+1} - V_{t+k})`` over one episode that ends in value 0.

    Args:
        rewards: Reward of each step, float[T].
        values: Value before each step, float[T].
        gamma: Discount.
        lam: 0 gives the temporal difference, 1 the return to go minus the value.

    Returns:
        float64[T]; adding ``values`` gives the critic's targets.

    Raises:
        ConfigError: Lengths differ, a number is not finite, or ``gamma`` or ``lam`` lies outside [0, 1].
    """
    value = finite_vector("values", values)
    reward = finite_vector("rewards", rewards, value.size)
    _check_fraction("gamma", gamma)
    _check_fraction("lam", lam)
    return _decayed_sums(reward + gamma * np.append(value[1:], 0.0)[: value.size] - value, gamma * lam)


def discounted_returns(rewards: FloatArray, gamma: float) -> FloatArray:
    """``sum_k gamma^k r_{t+k}`` for every step of one episode, float64[T].

    Raises:
        ConfigError: ``gamma`` lies outside [0, 1].
    """
    _check_fraction("gamma", gamma)
    return _decayed_sums(rewards, gamma)


def _decayed_sums(values: FloatArray, decay: float) -> FloatArray:
    sums = np.zeros_like(values)
    behind = 0.0
    for step in range(values.size - 1, -1, -1):
        behind = float(values[step]) + decay * behind
        sums[step] = behind
    return sums


def _check_fraction(name: str, value: float) -> None:
    if not 0.0 <= value <= 1.0:
        raise ConfigError(f"{name} lies in [0, 1], got {value}")


# PPO's advantage with a critic: GAE over an episode's tokens, whitened over the update.


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
    targets: ClassVar[frozenset[str]] = frozenset({"value_targets", "old_values"})
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
