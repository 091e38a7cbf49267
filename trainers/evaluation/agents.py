"""What an evaluation asks of an agent: how it plays, what it tries again, and what is written about it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from skillc_gym.episodes import Episode
from trainers.config import TrainConfig
from trainers.engines.random import Purpose
from trainers.evaluation.outcomes import ARMS
from trainers.evaluation.paired import PairedReport
from trainers.evaluation.player import PolicyPlayer
from trainers.rollout.collect import GroupRollouts
from trainers.stats import wilson


@dataclass(frozen=True)
class TrialOutcome:
    """In which trial a task was solved in each condition, counted from 1; None if in none."""

    task_id: str
    task_type: str
    with_skill: int | None
    without_skill: int | None


@dataclass(frozen=True)
class TrialReport:
    """What came of several trials: one outcome per task, and the episodes of each trial after the first."""

    outcomes: tuple[TrialOutcome, ...]
    trials: int
    later: tuple[tuple[Episode, ...], ...] = field(default=(), compare=False, repr=False)

    def success(self, skill: bool) -> list[float]:
        """Share of the tasks solved within 1, 2, ... trials."""
        return [self._solved(skill, trial) / len(self.outcomes) for trial in range(1, self.trials + 1)]

    def to_json(self) -> dict[str, Any]:
        """Rates with 95 % intervals (Wilson's) and outcomes, as JSON-able values."""
        arms = {arm: [self._trial(skill, trial) for trial in range(1, self.trials + 1)] for arm, skill in ARMS.items()}
        outcomes = [dict(vars(entry)) for entry in self.outcomes]
        return {"trials": self.trials, "n": len(outcomes), **arms, "outcomes": outcomes}

    def _trial(self, skill: bool, trial: int) -> dict[str, Any]:
        solved, tasks = self._solved(skill, trial), len(self.outcomes)
        interval = wilson(solved, tasks).to_json()
        return {"trial": trial, "solved": solved, "success": solved / tasks, "interval": interval}

    def _solved(self, skill: bool, trial: int) -> int:
        """How many tasks were solved in one of the first trials."""
        found = [outcome.with_skill if skill else outcome.without_skill for outcome in self.outcomes]
        return sum(first is not None and first <= trial for first in found)


def play_trials(
    first: PairedReport,
    trials: int,
    play: Callable[[int, Sequence[tuple[str, int]]], Sequence[Episode]],
    reflect: Callable[[Sequence[Episode]], object],
) -> TrialReport:
    """Tries failed tasks again, each in the condition in which it failed, in up to so many ``trials`` in all.

    ``reflect`` takes in the failed episodes before each further trial; ``play`` plays its (task, condition) pairs.
    """
    solved = {(episode.task_id, episode.condition): 1 for episode in first.episodes if episode.won}
    failed = [episode for episode in first.episodes if not episode.won]
    later: list[tuple[Episode, ...]] = []
    for trial in range(2, trials + 1):
        reflect(failed)
        played = tuple(play(trial, [(episode.task_id, episode.condition) for episode in failed])) if failed else ()
        solved |= {(episode.task_id, episode.condition): trial for episode in played if episode.won}
        failed = [episode for episode in played if not episode.won]
        later.append(played)
    outcomes = [
        TrialOutcome(o.task_id, o.task_type, solved.get((o.task_id, 1)), solved.get((o.task_id, 0)))
        for o in first.outcomes
    ]
    return TrialReport(tuple(outcomes), trials, tuple(later))


PANEL_SEED = Purpose.EVALUATE
"""What the seed of an evaluation's panel is derived for."""

PhaseProgress = Callable[[str], Callable[[int, int], object]]
"""Gives, for the name of a phase, whom to tell how many episodes are done."""


class RunningAgent:
    """An agent around a policy, ready to play; this one is the policy as it is, shown nothing but its prompt."""

    def __init__(self, player: PolicyPlayer, config: TrainConfig) -> None:
        self._player, self._config = player, config

    def rollouts(self) -> GroupRollouts:
        """Plays episodes that see what the agent knows now."""
        return self._player.rollouts(self._config)

    def play_trials(self, first: PairedReport) -> TrialReport | None:
        """Tries failed tasks again, if the agent does that."""
        return None

    def record(self) -> dict[str, Any]:
        """Name, options, figures and all that it knows, as JSON-able values."""
        own: dict[str, Any] = {"name": "zero-shot", "options": {}}
        fingerprint = hashlib.sha256(json.dumps([own, {}], sort_keys=True).encode()).hexdigest()
        return {**own, "figures": {}, "knows": {}, "fingerprint": fingerprint}

    def warning(self) -> str:
        """A sentence on what went wrong; "" if nothing did."""
        return ""


class EvaluatedAgent(Protocol):
    """A way to use a policy without training it."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def trials(self) -> int:
        """Most tries at a task."""

    def around(
        self, player: PolicyPlayer, config: TrainConfig, panel: Sequence[str], phase: PhaseProgress
    ) -> RunningAgent:
        """The agent around a policy, prepared; no agent sees the panel's tasks before, ``phase`` hears of progress."""
