"""Group-in-group advantages of GiGPO (Feng et al. 2025, arXiv 2505.10978): one value per step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from skillc_gym.errors import ConfigError
from trainers.advantages.base import Advantages, RolloutBatch, Scheme
from trainers.advantages.critic import discounted_returns
from trainers.advantages.grouping import (
    FloatArray,
    centre_groups,
    finite_vector,
    group_keys,
    normalise_groups,
    plain_keys,
)

__all__ = ["Gigpo", "gigpo"]

_EPS = 1e-6


@dataclass(frozen=True)
class Gigpo(Scheme):
    """The group-in-group advantage as a scheme: one value per turn, spread over the turn's tokens.

    A step's reward is the turn's own where those of an episode add up to its return; otherwise the return stands on the
    last step.

    Attributes:
        gamma: Discount of the return to go.
        step_weight: Weight of the step's part.
        std: Divide both parts by their group's standard deviation.
    """

    name: ClassVar[str] = "gigpo"
    whole_trajectories: ClassVar[bool] = True
    gamma: float = 0.95
    step_weight: float = 1.0
    std: bool = False

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
    minus the cluster's mean, so a cluster of one gives 0.

    Args:
        returns: Episode returns, float[N].
        task: Which task each rollout belongs to, N keys.
        anchors: Per rollout, the observation before each step.
        rewards: Per rollout, the reward of each step.
        gamma: Discount of the return to go.
        step_weight: Weight of the step's part.
        std: Divide both parts by their group's standard deviation (population, plus 1e-6).

    Returns:
        One float64 array per rollout, with one value per step.

    Raises:
        ConfigError: Lengths differ, a number is not finite or ``gamma`` lies outside [0, 1].
    """
    values = finite_vector("returns", returns)
    keys = group_keys(task, values.size)
    seen = [plain_keys(f"anchors[{i}]", own) for i, own in enumerate(anchors)]
    steps = _returns_to_go(values.size, seen, rewards, gamma)
    if not steps:
        return []
    episode = _relative(values, keys, std)
    clusters = [(key, anchor) for key, own in zip(keys, seen, strict=True) for anchor in own]
    step = _relative(np.concatenate(steps), clusters, std)
    ends = np.cumsum([one.size for one in steps])[:-1]
    return [whole + step_weight * part for whole, part in zip(episode, np.split(step, ends), strict=True)]


def _returns_to_go(
    size: int, anchors: Sequence[Sequence[Hashable]], rewards: Sequence[ArrayLike], gamma: float
) -> list[FloatArray]:
    if len(anchors) != size or len(rewards) != size:
        raise ConfigError(
            f"anchors and rewards need one list per rollout, {size}; got {len(anchors)} and {len(rewards)}"
        )
    return [
        discounted_returns(finite_vector(f"rewards[{i}]", own, len(seen)), gamma)
        for i, (own, seen) in enumerate(zip(rewards, anchors, strict=True))
    ]


def _relative(values: FloatArray, keys: Sequence[Hashable], std: bool) -> FloatArray:
    return normalise_groups(values, keys, _EPS) if std else centre_groups(values, keys)


def _step_rewards(rewards: Sequence[float], value: float) -> FloatArray:
    own = np.asarray(rewards, dtype=np.float64)
    if own.size and abs(own.sum() - value) > 1e-9:
        own = np.zeros_like(own)
        own[-1] = value
    return own


def _shared(task: Sequence[Hashable], anchors: Sequence[Sequence[Hashable]]) -> float:
    seen = Counter((key, anchor) for key, own in zip(task, anchors, strict=True) for anchor in own)
    return sum(count for count in seen.values() if count > 1) / max(1, seen.total())


SCHEME = Gigpo
