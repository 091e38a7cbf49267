"""Paired evaluation: every task of a fixed panel is played with the skill and without it, from the same seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any, Protocol

from skillc_gym.errors import ConfigError
from trainers.evaluation.paired_report import (
    ArmOutcome,
    Change,
    PairedCounts,
    PairedOutcome,
    PairedReport,
    compare_reports,
)

__all__ = [
    "ArmOutcome",
    "Change",
    "PairedCounts",
    "PairedOutcome",
    "PairedReport",
    "compare_reports",
    "paired_evaluation",
]


class Rollouts(Protocol):
    """Whoever plays groups of episodes; :class:`trainers.rollout.collect.GroupRollouts` is one."""

    def collect(
        self, task_ids: Sequence[str], n_plus: Sequence[int], group_size: int, *, seed: int, sampling: Any
    ) -> Sequence[Any]:
        """Plays one group per task; results have ``.episode`` and come by group, then member, injected ones first."""


def paired_evaluation(
    rollouts: Rollouts,
    panel: Sequence[str],
    *,
    seed: int,
    sampling: Any,
    attempts: int = 1,
    identity: Mapping[str, Any] | None = None,
    best_scores: Mapping[str, float] | None = None,
) -> PairedReport:
    """Plays every task of a panel with the skill and without, from the same seed.

    Args:
        rollouts: Plays the groups.
        panel: Task ids, each once.
        seed: Decides every draw.
        sampling: How replies are sampled, handed on as it is.
        attempts: How often each task is played in each condition.
        identity: What identifies the tasks beside their names; part of the panel's hash.
        best_scores: The score within reach, by task id, where the environment knows it.

    Raises:
        ConfigError: An empty panel, a repeated task, no attempt, or episodes that are no pairs.
    """
    tasks, size = list(panel), 2 * attempts
    if attempts < 1:
        raise ConfigError(f"attempts, how often each task is played in each condition, is at least 1; got {attempts}")
    if not tasks or len(set(tasks)) != len(tasks):
        raise ConfigError(
            f"A panel names each task once and is not empty; got {len(tasks)} names of {len(set(tasks))} tasks"
        )
    played = rollouts.collect(tasks, [attempts] * len(tasks), size, seed=seed, sampling=sampling)
    episodes = tuple(result.episode for result in played)
    if len(episodes) != size * len(tasks):
        raise ConfigError(f"Expected {size * len(tasks)} episodes, {size} per task; got {len(episodes)}")
    best = best_scores or {}
    outcomes = tuple(
        _outcome(task, episodes[start + attempt], episodes[start + attempts + attempt], attempt, best.get(task))
        for attempt in range(attempts)
        for task, start in zip(tasks, range(0, len(episodes), size), strict=True)
    )
    return PairedReport(outcomes, int(seed), _as_dict(sampling), dict(identity or {}), episodes)


def _outcome(task: str, with_: Any, without: Any, attempt: int, best: float | None) -> PairedOutcome:
    got = [(episode.task_id, int(episode.condition)) for episode in (with_, without)]
    if got != [(task, 1), (task, 0)]:
        raise ConfigError(f"Expected task {task!r} with the skill and then without, got {got}")
    return PairedOutcome(task, with_.task_type, _arm(with_), _arm(without), attempt, best)


def _arm(episode: Any) -> ArmOutcome:
    return ArmOutcome(episode.won >= 1.0, float(episode.task_score), len(episode.turns), getattr(episode, "cut", ""))


def _as_dict(sampling: Any) -> dict[str, Any]:
    if is_dataclass(sampling) and not isinstance(sampling, type):
        return asdict(sampling)
    return dict(sampling) if isinstance(sampling, Mapping) else {"sampling": str(sampling)}
