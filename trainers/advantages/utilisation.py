"""Skill0.5's advantage (arXiv 2605.28424): easy tasks are also credited for using their skill."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from trainers.advantages.base import Advantages, Scheme
from trainers.advantages.batch import RolloutBatch
from trainers.advantages.grouping import FloatArray, finite_vector, flag_vector, group_indices, group_keys, normalise

__all__ = ["SCHEME", "Utilisation", "is_guided", "usual_success", "utilisation"]


def utilisation(
    returns: ArrayLike, task: Sequence[Hashable], condition: ArrayLike, *, omega: float = 1.0, cap: float = 3.0
) -> FloatArray:
    """``(R - mean) / std + omega clip((d - mean d) / std d, -cap, cap)`` with the skill, 0 without it.

    The first part is GRPO's over a task's skill-injected rollouts. ``d`` is a task's mean return with the skill minus
    that without; its mean and standard deviation run over the tasks that have both, and tasks without skill-free probes
    have no second part. The released code also offers a moving mean of ``d`` over updates in place of the batch's.

    Args:
        returns: Episode returns, float[N].
        task: Which task each rollout belongs to, N keys.
        condition: 1 with the skill, 0 for a skill-free probe, [N].
        omega: Weight of the second part.
        cap: Bound of the second part.

    Returns:
        float64[N].

    Raises:
        ConfigError: Lengths differ or a value is out of range.
    """
    values = finite_vector("returns", returns)
    with_skill = flag_vector("condition", condition, values.size)
    groups = group_indices(group_keys(task, values.size))
    branches = [(rows[with_skill[rows]], rows[~with_skill[rows]]) for rows in groups]
    gaps = [_mean(values[own]) - _mean(values[probes]) for own, probes in branches if own.size and probes.size]
    centre, spread = (fmean(gaps), pstdev(gaps)) if gaps else (0.0, 0.0)
    advantage = np.zeros_like(values)
    for own, probes in branches:
        advantage[own] = normalise(values[own], 1e-6)
        if own.size and probes.size and spread > 1e-6:
            gap = _mean(values[own]) - _mean(values[probes])
            advantage[own] += omega * min(max((gap - centre) / (spread + 1e-6), -cap), cap)
    return advantage


def is_guided(skill: str) -> bool:
    """Whether an episode's skill name is that of general and specific skills together."""
    return "+" in skill


def usual_success(batch: RolloutBatch) -> dict[str, float]:
    """Success per task type among the rollouts that saw their usual prompt: a skill, and no guidance."""
    won: dict[str, list[float]] = {}
    for trajectory in batch.trajectories:
        episode = trajectory.episode
        if episode.condition and not is_guided(episode.skill):
            won.setdefault(episode.task_type, []).append(float(episode.won))
    return {kind: fmean(outcomes) for kind, outcomes in sorted(won.items())}


@dataclass(frozen=True)
class Utilisation(Scheme):
    """:func:`utilisation` as a scheme; guided rollouts have no advantage, they are distilled.

    Attributes:
        utilisation_weight: Weight of the part for using the skill (the paper's omega).
        cap: Bound of that part.
    """

    name: ClassVar[str] = "utilisation"
    whole_trajectories: ClassVar[bool] = True
    utilisation_weight: float = 1.0
    cap: float = 3.0

    def __call__(self, batch: RolloutBatch) -> Advantages:
        """One number per rollout."""
        usual = [i for i, each in enumerate(batch.trajectories) if not is_guided(each.episode.skill)]
        values = np.zeros(len(batch.task))
        values[usual] = utilisation(
            batch.returns[usual],
            [batch.task[i] for i in usual],
            batch.condition[usual],
            omega=self.utilisation_weight,
            cap=self.cap,
        )
        return Advantages(values, log={"guided": 1.0 - len(usual) / len(values)})


def _mean(values: FloatArray) -> float:
    return fmean(values.tolist()) if values.size else 0.0


SCHEME = Utilisation
