"""Paired evaluation: every task of a fixed panel is played with the skill and without it, from the same seed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any, Protocol

from skillc_gym.errors import ConfigError
from trainers.paired_report import Change, PairedCounts, PairedOutcome, PairedReport, compare_reports, panel_hash

__all__ = [
    "Change",
    "PairedCounts",
    "PairedOutcome",
    "PairedReport",
    "TaskSet",
    "compare_reports",
    "paired_evaluation",
    "panel",
    "panel_hash",
]


class TaskSet(Protocol):
    """What :func:`panel` reads of a game set."""

    @property
    def task_ids(self) -> Sequence[str]:
        """All tasks."""

    def task_type(self, task_id: str) -> str:
        """A task's type."""


class Rollouts(Protocol):
    """Whoever plays groups of episodes; :class:`trainers.rollout.GroupRollouts` is one."""

    def collect(
        self, task_ids: Sequence[str], n_plus: Sequence[int], group_size: int, *, seed: int, sampling: Any
    ) -> Sequence[Any]:
        """Plays one group per task; results have ``.episode`` and come by group, then member, injected ones first."""


def panel(game_set: TaskSet, per_type: int, seed: int = 0) -> tuple[str, ...]:
    """Picks a fixed panel with the same number of tasks of every type.

    The tasks are ranked by a hash of seed and id, so another machine, or a set that grew, picks the same ones as far as
    it can.

    Args:
        game_set: Where to pick from.
        per_type: Tasks per type.
        seed: Another seed, another panel.

    Returns:
        Task ids, sorted.

    Raises:
        ConfigError: A type has fewer than ``per_type`` tasks.
    """
    by_type: dict[str, list[str]] = {}
    for task_id in game_set.task_ids:
        by_type.setdefault(game_set.task_type(task_id), []).append(task_id)
    if per_type < 1 or not by_type:
        raise ConfigError(f"A panel needs tasks and per_type >= 1, got {len(by_type)} types and per_type={per_type}")
    chosen: list[str] = []
    for kind, ids in by_type.items():
        if len(ids) < per_type:
            raise ConfigError(
                f"A balanced panel of {per_type} per type needs more tasks of {kind!r}: there are {len(ids)}. "
                f"Ask for per_type <= {min(map(len, by_type.values()))}, or evaluate the whole split"
            )
        chosen += sorted(ids, key=lambda task: hashlib.sha256(f"{seed}:{task}".encode()).hexdigest())[:per_type]
    return tuple(sorted(chosen))


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
