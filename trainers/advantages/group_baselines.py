"""Advantages against a baseline from the same task: GRPO, RLOO, a raised baseline, Skill0.5."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean, pstdev
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from skillc_gym.errors import ConfigError
from trainers.advantages.base import Advantages, RolloutBatch, Scheme
from trainers.advantages.grouping import (
    FloatArray,
    centre,
    finite_vector,
    flag_vector,
    group_indices,
    group_keys,
    mean,
    normalise,
    over_groups,
)
from trainers.base import Fraction, NotNegative, Positive


@dataclass(frozen=True)
class Grpo(Scheme):
    """The group advantage as a scheme."""

    name: ClassVar[str] = "grpo"
    eps: Positive = 1e-6
    """Added to every standard deviation."""
    group_by: Literal["task", "condition", "text"] = "task"
    """What makes a group: the rollouts of a task, those of a task and condition, or those of a task that were shown the
    same text. Only the first compares a rollout with the skill to one without; where no rollout sees a skill, all are
    the same."""

    @property
    def by_text(self) -> bool:
        """Where each text is a group of its own."""
        return self.group_by == "text"

    def __call__(self, batch: RolloutBatch) -> Advantages:
        """The advantage; its parts bear the names of SkillC's, so that the records of both lie side by side."""
        values = grpo(batch.returns, self._groups(batch), eps=self.eps)
        nothing = np.zeros_like(values)
        return Advantages(values, parts={"outcome": values, "conditional": nothing, "correction": nothing})

    def _groups(self, batch: RolloutBatch) -> Sequence[Hashable]:
        if self.group_by == "task":
            return batch.task
        if self.by_text and not batch.text:
            raise ConfigError("group_by='text' compares rollouts that were shown one text: say each one's skill_sha256")
        shown: Sequence[Hashable] = batch.text if self.by_text else batch.condition.tolist()
        return list(zip(batch.task, shown, strict=True))


def grpo(returns: ArrayLike, task: Sequence[Hashable], eps: float = 1e-6) -> FloatArray:
    """``(R_i - mean) / (std + eps)`` within the rollouts of each task, population standard deviation.

    From returns, float[N], and the task of each rollout, N keys, gives float64[N]; exactly 0 for tasks with one rollout
    or equal returns. A ConfigError if lengths differ or a return is not finite.
    """
    values = finite_vector("returns", returns)
    return over_groups(values, group_keys(task, values.size), partial(normalise, eps=eps))


@dataclass(frozen=True)
class Rloo(Scheme):
    """The leave-one-out advantage as a scheme."""

    name: ClassVar[str] = "rloo"

    def __call__(self, batch: RolloutBatch) -> Advantages:
        """One number per rollout."""
        return Advantages(rloo(batch.returns, batch.task))


def rloo(returns: ArrayLike, task: Sequence[Hashable]) -> FloatArray:
    """``R_i - mean of the other returns`` within the rollouts of each task (Ahmadian et al. 2024, arXiv 2402.14740).

    Arguments and errors as of :func:`grpo`; float64[N] that sums to 0 within a task.
    """
    values = finite_vector("returns", returns)
    # R_i minus the mean of the others is n / (n - 1) times R_i minus the mean of all.
    return over_groups(values, group_keys(task, values.size), lambda own: own.size / max(own.size - 1, 1) * centre(own))


@dataclass(frozen=True)
class RaisedBaseline(Scheme):
    """:func:`raised_baseline` as a scheme."""

    name: ClassVar[str] = "raised_baseline"
    raise_by: Fraction = 0.5
    """How far the skill's success raises the skill-free baseline (the formula's rho), in [0, 1]."""
    sigma_min: Positive = 0.1
    """Smallest divisor."""

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

    Returns are on the success scale, ``condition`` is 1 with the skill; else as of :func:`grpo`. float64[N].
    """
    if not 0.0 <= rho <= 1.0 or not sigma_min > 0.0:
        raise ConfigError(f"rho lies in [0, 1] and sigma_min is positive, got rho={rho}, sigma_min={sigma_min}")
    values = finite_vector("returns", returns)
    if values.size and not 0.0 <= values.min() <= values.max() <= 1.0:
        raise ConfigError(f"a raised baseline needs returns in [0, 1], got {values.min():g} to {values.max():g}")
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


def utilisation(
    returns: ArrayLike, task: Sequence[Hashable], condition: ArrayLike, *, omega: float = 1.0, cap: float = 3.0
) -> FloatArray:
    """``(R - mean) / std + omega clip((d - mean d) / std d, -cap, cap)`` with the skill, 0 without it; float64[N].

    Skill0.5's credit for using a skill on easy tasks (arXiv 2605.28424). The first part is GRPO's over a task's
    skill-injected rollouts. ``d`` is a task's mean return with the skill minus that without; its mean and standard
    deviation run over the tasks that have both, and tasks without skill-free probes have no second part. The released
    code subtracts the mean of the last five updates' ``d``; with the batch's own, a cap of 3 acts from 11 tasks on.
    """
    values = finite_vector("returns", returns)
    with_skill = flag_vector("condition", condition, values.size)
    groups = group_indices(group_keys(task, values.size))
    branches = [(rows[with_skill[rows]], rows[~with_skill[rows]]) for rows in groups]
    gaps = [
        _mean(values[own]) - _mean(values[probes]) if own.size and probes.size else None for own, probes in branches
    ]
    known = [gap for gap in gaps if gap is not None]
    centre, spread = (fmean(known), pstdev(known)) if known else (0.0, 0.0)
    advantage = np.zeros_like(values)
    for (own, _), gap in zip(branches, gaps, strict=True):
        advantage[own] = normalise(values[own], 1e-6)
        if gap is not None and spread > 1e-6:
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
    """:func:`utilisation` as a scheme; guided rollouts have no advantage, they are distilled."""

    name: ClassVar[str] = "utilisation"
    needs_memory: ClassVar[str] = "guided_library"
    needs_allocation: ClassVar[str] = "difficulty"
    whole_trajectories: ClassVar[bool] = True
    utilisation_weight: NotNegative = 1.0
    """Weight of the part for using the skill (the paper's omega)."""
    cap: NotNegative = 3.0
    """Bound of that part."""

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


SCHEMES = (Grpo, Rloo, RaisedBaseline, Utilisation)
