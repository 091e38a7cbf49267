"""A skill-free baseline raised towards what the skill achieves: the study's variant ``baseline``."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from skillc_gym.errors import ConfigError
from trainers.advantages.base import Advantages, Scheme
from trainers.advantages.batch import RolloutBatch
from trainers.advantages.grouping import FloatArray, finite_vector, flag_vector, group_indices, group_keys, mean

__all__ = ["RaisedBaseline", "raised_baseline"]


@dataclass(frozen=True)
class RaisedBaseline(Scheme):
    """:func:`raised_baseline` as a scheme.

    Attributes:
        raise_by: How far the skill's success raises the skill-free baseline (the formula's rho), in [0, 1].
        sigma_min: Smallest divisor.
    """

    name: ClassVar[str] = "raised_baseline"
    raise_by: float = 0.5
    sigma_min: float = 0.1

    def __call__(self, batch: RolloutBatch) -> Advantages:
        """One number per rollout."""
        return Advantages(raised_baseline(batch.returns, batch.task, batch.condition, self.raise_by, self.sigma_min))


def raised_baseline(
    returns: ArrayLike,
    task: Sequence[Hashable],
    condition: ArrayLike,
    rho: float = 0.5,
    sigma_min: float = 0.1,
) -> FloatArray:
    """``A = (R - b) / max(sigma, sigma_min)`` with ``b = max(b0, rho b1)`` without the skill and ``b = b1`` with it.

    ``b0`` and ``b1`` are the mean returns of the task's skill-free and skill-injected rollouts and ``sigma`` is the
    standard deviation of the rollout's own branch. With ``rho = 0`` (returns being non-negative) each branch has its
    own mean as a baseline. Raising it makes skill-free failures count although the whole branch failed, so a task that
    only the skill can win still gives a gradient; ``sigma_min`` bounds how far such a uniform branch is scaled up.

    Args:
        returns: Episode returns on the success scale, float[N].
        task: Which task each rollout belongs to, N keys.
        condition: 1 with the skill, 0 without, [N].
        rho: How far the skill's success raises the baseline, in [0, 1].
        sigma_min: Smallest divisor.

    Returns:
        float64[N].

    Raises:
        ConfigError: Lengths differ or a value lies out of range.
    """
    if not 0.0 <= rho <= 1.0 or not sigma_min > 0.0:
        raise ConfigError(f"rho lies in [0, 1] and sigma_min is positive, got rho={rho}, sigma_min={sigma_min}")
    values = finite_vector("returns", returns)
    with_skill = flag_vector("condition", condition, values.size)
    advantage = np.zeros_like(values)
    for rows in group_indices(group_keys(task, values.size)):
        injected, plain = rows[with_skill[rows]], rows[~with_skill[rows]]
        b1, b0 = _mean(values[injected]), _mean(values[plain])
        advantage[injected] = _scaled(values[injected], b1, sigma_min)
        advantage[plain] = _scaled(values[plain], max(b0, rho * b1) if injected.size else b0, sigma_min)
    return advantage


def _mean(values: FloatArray) -> float:
    return mean(values.tolist()) if values.size else 0.0


def _scaled(values: FloatArray, baseline: float, sigma_min: float) -> FloatArray:
    spread = _mean((values - _mean(values)) ** 2) ** 0.5
    return np.asarray((values - baseline) / max(spread, sigma_min), dtype=np.float64)


SCHEME = RaisedBaseline
