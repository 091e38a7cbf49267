"""Success by trial: who is tried again, and what is counted."""

from __future__ import annotations

import pytest

from skillc_gym.episodes import Episode
from tests.trainers.rollouts_of import episode
from trainers.evaluation import ArmOutcome, PairedOutcome, PairedReport, play_trials, trial_table

WON_IN = {("a", 1): 1, ("a", 0): 2, ("b", 1): 3, ("b", 0): None}


def played(task: str, condition: int, trial: int) -> Episode:
    return episode(task, condition=condition, won=WON_IN[task, condition] == trial)


def first() -> PairedReport:
    episodes = tuple(played(task, condition, 1) for task, condition in WON_IN)
    arms = [ArmOutcome(bool(each.won), each.won, 1) for each in episodes]
    outcomes = (PairedOutcome("a", "heat", arms[0], arms[1]), PairedOutcome("b", "heat", arms[2], arms[3]))
    return PairedReport(outcomes, 0, {}, episodes=episodes)


def test_only_failures_are_tried_again_each_in_its_condition() -> None:
    asked, failures = [], []

    def play(trial: int, tasks):
        asked.append((trial, tuple(tasks)))
        return [played(task, condition, trial) for task, condition in tasks]

    report = play_trials(first(), 4, play, lambda failed: failures.append(len(failed)))
    assert asked == [(2, (("a", 0), ("b", 1), ("b", 0))), (3, (("b", 1), ("b", 0))), (4, (("b", 0),))]
    assert failures == [3, 2, 1]
    assert (report.success(True), report.success(False)) == ([0.5, 0.5, 1.0, 1.0], [0.0, 0.5, 0.5, 0.5])
    assert {(o.task_id, o.with_skill, o.without_skill) for o in report.outcomes} == {("a", 1, 2), ("b", 3, None)}
    assert [len(episodes) for episodes in report.later] == [3, 2, 1]
    found = report.to_json()["with"][2]
    assert (found["trial"], found["solved"], found["success"]) == (3, 2, 1.0)
    assert found["interval"][0] < 1.0
    assert "3 tries                100.0       50.0" in trial_table(report)


@pytest.mark.parametrize("trials", [1, 2])
def test_nobody_is_asked_when_all_is_won_or_there_is_one_trial(trials: int) -> None:
    whole = episode("a", condition=1), episode("a", condition=0)
    arm = ArmOutcome(True, 1.0, 1)
    report = PairedReport((PairedOutcome("a", "heat", arm, arm),), 0, {}, episodes=whole)

    def play(trial: int, tasks):
        raise AssertionError

    found = play_trials(report, trials, play, lambda failed: None)
    assert found.success(True) == found.success(False) == [1.0] * trials
