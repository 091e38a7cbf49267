"""Success by trial, where failed tasks are tried again: never a figure of single tries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from skillc_gym.episodes import Episode
from trainers.evaluation.paired import PairedReport
from trainers.stats import wilson

__all__ = ["TrialOutcome", "TrialReport", "play_trials"]

_ARMS = {"with": 1, "without": 0}


@dataclass(frozen=True)
class TrialOutcome:
    """In which trial a task was solved in each condition, counted from 1; None if in none.

    Attributes:
        task_id: The task.
        task_type: Its type.
        with_skill: With the skill.
        without_skill: Without it.
    """

    task_id: str
    task_type: str
    with_skill: int | None
    without_skill: int | None

    def solved(self, skill: bool, trial: int) -> bool:
        """Whether it was solved in one of the first trials."""
        found = self.with_skill if skill else self.without_skill
        return found is not None and found <= trial


@dataclass(frozen=True)
class TrialReport:
    """What came of several trials.

    Attributes:
        outcomes: One per task of the panel.
        trials: Most trials of a task.
        later: The episodes of each trial after the first; not part of the JSON.
    """

    outcomes: tuple[TrialOutcome, ...]
    trials: int
    later: tuple[tuple[Episode, ...], ...] = field(default=(), compare=False, repr=False)

    def success(self, skill: bool) -> list[float]:
        """Share of the tasks solved within 1, 2, ... trials."""
        return [self._solved(skill, trial) / len(self.outcomes) for trial in range(1, self.trials + 1)]

    def to_json(self) -> dict[str, Any]:
        """Rates with 95 % intervals (Wilson's) and outcomes, as JSON-able values."""
        tasks = len(self.outcomes)
        arms = {
            arm: [
                {
                    "trial": trial,
                    "solved": self._solved(bool(skill), trial),
                    "success": self.success(bool(skill))[trial - 1],
                    "interval": wilson(self._solved(bool(skill), trial), tasks).to_json(),
                }
                for trial in range(1, self.trials + 1)
            ]
            for arm, skill in _ARMS.items()
        }
        return {"trials": self.trials, "n": tasks, **arms, "outcomes": [dict(vars(entry)) for entry in self.outcomes]}

    def _solved(self, skill: bool, trial: int) -> int:
        return sum(outcome.solved(skill, trial) for outcome in self.outcomes)


def play_trials(
    first: PairedReport,
    trials: int,
    play: Callable[[int, Sequence[tuple[str, int]]], Sequence[Episode]],
    reflect: Callable[[Sequence[Episode]], object],
) -> TrialReport:
    """Tries failed tasks again, each in the condition in which it failed.

    Args:
        first: The first trial, every task once in each condition.
        trials: Most trials of a task.
        play: From the number of a trial and (task, condition) to episodes.
        reflect: Takes in the failed episodes before each further trial.
    """
    solved = {(episode.task_id, episode.condition): 1 for episode in first.episodes if episode.won}
    failed = _failed(first.episodes)
    later: list[tuple[Episode, ...]] = []
    for trial in range(2, trials + 1):
        reflect(failed)
        played = tuple(play(trial, [(episode.task_id, episode.condition) for episode in failed])) if failed else ()
        solved |= {(episode.task_id, episode.condition): trial for episode in played if episode.won}
        failed = _failed(played)
        later.append(played)
    outcomes = [
        TrialOutcome(o.task_id, o.task_type, solved.get((o.task_id, 1)), solved.get((o.task_id, 0)))
        for o in first.outcomes
    ]
    return TrialReport(tuple(outcomes), trials, tuple(later))


def _failed(episodes: Iterable[Episode]) -> list[Episode]:
    return [episode for episode in episodes if not episode.won]
