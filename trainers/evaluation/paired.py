"""Paired evaluation: every task of a fixed panel is played with the skill and without it, from the same seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any, Protocol

from skillc_gym.errors import ConfigError
from trainers.evaluation.paired_report import Change, PairedCounts, PairedOutcome, PairedReport, compare_reports

__all__ = [
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


def paired_evaluation(rollouts: Rollouts, panel: Sequence[str], *, seed: int, sampling: Any) -> PairedReport:
    """Plays every task of a panel once with the skill and once without, from the same seed.

    Args:
        rollouts: Plays the groups.
        panel: Task ids, each once.
        seed: Decides every draw.
        sampling: How replies are sampled, handed on as it is.

    Raises:
        ConfigError: An empty panel, a repeated task, or episodes that are no pairs.
    """
    tasks = list(panel)
    if not tasks or len(set(tasks)) != len(tasks):
        raise ConfigError(
            f"A panel names each task once and is not empty; got {len(tasks)} names, {len(set(tasks))} tasks"
        )
    played = rollouts.collect(tasks, [1] * len(tasks), 2, seed=seed, sampling=sampling)
    episodes = tuple(result.episode for result in played)
    if len(episodes) != 2 * len(tasks):
        raise ConfigError(f"Expected {2 * len(tasks)} episodes, two per task; got {len(episodes)}")
    pairs = zip(tasks, episodes[::2], episodes[1::2], strict=True)
    outcomes = tuple(_outcome(task, with_, without) for task, with_, without in pairs)
    return PairedReport(outcomes, int(seed), _as_dict(sampling), episodes)


def _outcome(task: str, with_: Any, without: Any) -> PairedOutcome:
    got = [(episode.task_id, int(episode.condition)) for episode in (with_, without)]
    if got != [(task, 1), (task, 0)]:
        raise ConfigError(f"Expected task {task!r} with the skill and then without, got {got}")
    return PairedOutcome(
        task_id=task,
        task_type=with_.task_type,
        won_with=with_.won >= 1.0,
        won_without=without.won >= 1.0,
        score_with=float(with_.task_score),
        score_without=float(without.task_score),
        steps_with=len(with_.turns),
        steps_without=len(without.turns),
    )


def _as_dict(sampling: Any) -> dict[str, Any]:
    if is_dataclass(sampling) and not isinstance(sampling, type):
        return asdict(sampling)
    return dict(sampling) if isinstance(sampling, Mapping) else {"sampling": str(sampling)}
