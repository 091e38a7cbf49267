"""Advantages with a value per step or token: PPO with a critic, and GiGPO."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from skillc_gym.errors import ConfigError
from trainers.advantages.base import Advantages, RolloutBatch, Scheme
from trainers.advantages.grouping import (
    FloatArray,
    centre,
    finite_vector,
    group_keys,
    normalise,
    over_groups,
    plain_keys,
    whiten,
)
from trainers.base import Fraction, NotNegative


def gae(rewards: ArrayLike, values: ArrayLike, gamma: float = 1.0, lam: float = 1.0) -> FloatArray:
    """``A_t = sum_k (gamma lam)^k (r_{t+k} + gamma V_{t+k+1} - V_{t+k})`` over one episode that ends in value 0.

    From the reward of each step and the value before it, float[T]; adding the values gives the critic's targets. With
    ``lam`` 0 it is the temporal difference, with 1 the return to go minus the value. A ConfigError if lengths differ, a
    number is not finite, or ``gamma`` or ``lam`` lies outside [0, 1]. Source: Schulman et al. 2016, arXiv 1506.02438.
    """
    value = finite_vector("values", values)
    reward = finite_vector("rewards", rewards, value.size)
    _check_fraction("gamma", gamma)
    _check_fraction("lam", lam)
    return _decayed_sums(reward + gamma * np.append(value[1:], 0.0)[: value.size] - value, gamma * lam)


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


@dataclass(frozen=True)
class Ppo(Scheme):
    """PPO's advantage with a critic: GAE over an episode's tokens, whitened over the update.

    The episode's return stands on its last token; the figure ``values`` per own token is the critic's. With the
    defaults the advantage is the return minus the value, the same whether an episode is one sequence or one per step.
    """

    name: ClassVar[str] = "ppo"
    inputs: ClassVar[frozenset[str]] = frozenset({"values"})
    targets: ClassVar[frozenset[str]] = frozenset({"value_targets", "old_values"})
    gamma: Fraction = 1.0
    """Discount per token."""
    gae_lambda: Fraction = 1.0
    """0 trusts the critic, 1 the return."""
    whitening: bool = True
    """Whether advantages get mean 0 and variance 1 over the update's tokens."""

    def __call__(self, batch: RolloutBatch) -> Advantages:
        """The advantages, and ``value_targets`` and ``old_values`` for the value loss."""
        values = [np.asarray(own, dtype=np.float64) for own in batch.scores["values"]]
        plain = [
            gae(np.append(np.zeros(own.size), float(reward))[1:], own, self.gamma, self.gae_lambda)
            for own, reward in zip(values, batch.returns, strict=True)
        ]
        targets = [own + advantage for own, advantage in zip(values, plain, strict=True)]
        return Advantages(
            tuple(whiten(plain) if self.whitening else plain),
            targets={"value_targets": tuple(targets), "old_values": tuple(values)},
            log={"explained_variance": _explained(np.concatenate(targets), np.concatenate(values))},
        )


def _explained(targets: FloatArray, values: FloatArray) -> float | None:
    """Share of the targets' variance that the values explain; None where the targets do not vary."""
    spread = float(targets.var()) if targets.size else 0.0
    return 1.0 - float((targets - values).var()) / spread if spread > 0 else None


_EPS = 1e-6


@dataclass(frozen=True)
class Gigpo(Scheme):
    """The group-in-group advantage as a scheme: one value per turn, spread over the turn's tokens.

    A step's reward is the turn's own where those of an episode add up to its return; otherwise the return stands on the
    last step.
    """

    name: ClassVar[str] = "gigpo"
    whole_trajectories: ClassVar[bool] = True
    judges_steps: ClassVar[bool] = True
    gamma: Fraction = 0.95
    """Discount of the return to go."""
    step_weight: NotNegative = 1.0
    """Weight of the step's part."""
    std: bool = False
    """Divide both parts by their group's standard deviation."""

    def __call__(self, batch: RolloutBatch) -> Advantages:
        """One array per rollout; logs ``step_cluster_share``, the share of steps whose anchor another step has too."""
        episodes = [trajectory.episode for trajectory in batch.trajectories]
        anchors = [[turn.observation for turn in episode.turns] for episode in episodes]
        rewards = [
            _step_rewards([turn.reward for turn in episode.turns], float(value))
            for episode, value in zip(episodes, batch.returns, strict=True)
        ]
        per_turn = gigpo(batch.returns, batch.task, anchors, rewards, self.gamma, self.step_weight, self.std)
        lengths = [trajectory.reply_lengths for trajectory in batch.trajectories]
        per_token = tuple(np.repeat(turns, tokens) for turns, tokens in zip(per_turn, lengths, strict=True))
        return Advantages(per_token, log={"step_cluster_share": _shared(batch.task, anchors)})


def gigpo(  # noqa: PLR0917 - the order of the arguments is a contract
    returns: ArrayLike,
    task: Sequence[Hashable],
    anchors: Sequence[Sequence[Hashable]],
    rewards: Sequence[ArrayLike],
    gamma: float = 0.95,
    step_weight: float = 1.0,
    std: bool = False,
) -> list[FloatArray]:
    """``A_episode + step_weight * A_step`` for every step of every rollout.

    ``A_episode`` is the return minus the mean of its task. For ``A_step`` the steps of one task that were taken at the
    same anchor observation form a cluster, over rollouts and over time; a step's value is its discounted return to go
    minus the cluster's mean, so a cluster of one gives 0. With ``std`` both parts are divided by their group's standard
    deviation (population, plus 1e-6).

    From returns, float[N], N tasks, and per rollout the observation before each step and the step's reward; gives one
    float64 array per rollout. A ConfigError if lengths differ, a number is not finite or ``gamma`` is not in [0, 1].
    """
    values = finite_vector("returns", returns)
    keys = group_keys(task, values.size)
    seen = [plain_keys(f"anchors[{i}]", own) for i, own in enumerate(anchors)]
    steps = _returns_to_go(values.size, seen, rewards, gamma)
    if not steps:
        return []
    relative = partial(over_groups, function=partial(normalise, eps=_EPS) if std else centre)
    episode = relative(values, keys)
    clusters = [(key, anchor) for key, own in zip(keys, seen, strict=True) for anchor in own]
    step = relative(np.concatenate(steps), clusters)
    ends = np.cumsum([one.size for one in steps])[:-1]
    return [whole + step_weight * part for whole, part in zip(episode, np.split(step, ends), strict=True)]


def _returns_to_go(
    size: int, anchors: Sequence[Sequence[Hashable]], rewards: Sequence[ArrayLike], gamma: float
) -> list[FloatArray]:
    if len(anchors) != size or len(rewards) != size:
        raise ConfigError(
            f"anchors and rewards need one list per rollout, {size}; got {len(anchors)} and {len(rewards)}"
        )
    _check_fraction("gamma", gamma)
    return [
        _decayed_sums(finite_vector(f"rewards[{i}]", own, len(seen)), gamma)
        for i, (own, seen) in enumerate(zip(rewards, anchors, strict=True))
    ]


def _step_rewards(rewards: Sequence[float], value: float) -> FloatArray:
    own = np.asarray(rewards, dtype=np.float64)
    if own.size and abs(own.sum() - value) > 1e-9:
        own = np.zeros_like(own)
        own[-1] = value
    return own


def _shared(task: Sequence[Hashable], anchors: Sequence[Sequence[Hashable]]) -> float:
    seen = Counter((key, anchor) for key, own in zip(task, anchors, strict=True) for anchor in own)
    return sum(count for count in seen.values() if count > 1) / max(1, seen.total())


SCHEMES = (Ppo, Gigpo)
