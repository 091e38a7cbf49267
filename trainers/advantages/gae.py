"""Generalised advantage estimation (Schulman et al. 2016, arXiv 1506.02438) and discounted returns."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from skillc_gym.errors import ConfigError
from trainers.advantages.grouping import FloatArray, finite_vector

__all__ = ["discounted_returns", "gae"]


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
