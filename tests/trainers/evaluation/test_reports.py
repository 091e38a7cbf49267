"""Reports of paired evaluations: rates, intervals, several attempts, scores, actions, cuts, identity, comparison."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc_gym.episodes import Episode
from skillc_gym.errors import ConfigError
from tests.trainers.rollouts_of import episode
from trainers.base import Sampling, Trajectory
from trainers.evaluation import (
    ArmOutcome,
    PairedCounts,
    PairedOutcome,
    PairedReport,
    action_warning,
    compare_reports,
    cut_warning,
    graded,
    mean_scores,
    paired_evaluation,
    pass_at_k,
    pass_rates,
    play_trials,
    report_table,
    trial_table,
    validation_record,
)
from trainers.recipes import get_recipe
from trainers.recipes.method import Method

TASKS = ["heat/0", "heat/1", "heat/2", "cool/0", "cool/1"]


class Player:
    """Solves with the skill what is listed, and without it what is listed; a part of the episodes may be kept back."""

    def __init__(self, with_: Sequence[str] = (), without: Sequence[str] = (), part: slice = slice(None)) -> None:
        self.solved, self.part, self.calls = {1: with_, 0: without}, part, []

    def collect(self, task_ids: Sequence[str], n_plus: Sequence[int], group_size: int, *, seed: int, sampling: Any):
        self.calls.append((list(n_plus), group_size, seed))
        played = [
            episode(
                task, kind=task.split("/")[0], condition=c, won=task in self.solved[c], actions=["look"] * (5 - 2 * c)
            )
            for task in task_ids
            for c in (1, 0)
        ]
        return [Trajectory(each, [], 0) for each in played][self.part]


def play(with_: Sequence[str], without: Sequence[str], tasks: Sequence[str] = TASKS) -> PairedReport:
    return paired_evaluation(Player(with_, without), tasks, seed=3, sampling=Sampling(0.4))


def test_rates_gaps_and_counts() -> None:
    player = Player(["heat/0", "heat/1", "cool/0"], ["heat/0", "cool/1"])
    report = paired_evaluation(player, TASKS, seed=11, sampling=Sampling())
    assert player.calls == [([1] * 5, 2, 11)]
    assert (report.overall.sr_with, report.overall.sr_without) == (0.6, 0.4)
    assert report.overall.gap == pytest.approx(0.2)
    heat = report.per_type["heat"]
    assert (heat.both, heat.only_with, heat.only_without, heat.neither) == (1, 1, 0, 1)
    assert report.sr_with == {"cool": 0.5, "heat": pytest.approx(2 / 3)}
    assert {kind: counts.n for kind, counts in report.per_type.items()} == {"cool": 2, "heat": 3}
    assert heat.gap_interval.low < heat.gap < heat.gap_interval.high
    assert heat.sr_with_interval.low < heat.sr_with < heat.sr_with_interval.high
    assert all(error > 0 for error in report.gap_standard_error.values())
    assert [(o.with_skill.steps, o.without_skill.steps) for o in report.outcomes] == [(3, 5)] * 5
    assert len(report.episodes) == 10


def test_reports_round_trip_through_json(tmp_path: Path) -> None:
    report = replace(play(["heat/0", "heat/1", "cool/0"], ["heat/0"]), warning="odd", agent="react")
    report.save(tmp_path / "report.json")
    loaded = PairedReport.load(tmp_path / "report.json")
    assert loaded == report
    assert loaded.to_json() == report.to_json()
    assert loaded.sampling["temperature"] == 0.4
    written = json.loads((tmp_path / "report.json").read_text())
    assert written["overall"]["gap_interval"] == report.overall.gap_interval.to_json()


def test_reports_of_older_versions_are_read() -> None:
    new = PairedReport(GOALS[:1], 3, {"greedy": False}).to_json()
    kept = ("task_id", "task_type", "won_with", "won_without", "score_with", "score_without", "steps_with")
    old = {key: new[key] for key in ("panel_sha256", "seed", "sampling")}
    old["outcomes"] = [{**{key: o[key] for key in kept}, "steps_without": 12} for o in new["outcomes"]]
    report = PairedReport.from_json(old)
    assert report.outcomes[0].without_skill == ArmOutcome(False, 0.0, 12)
    assert report.actions()["with"] == {"well_formed": None, "admissible": None}
    assert "well-formed         --" in report_table(report)


@pytest.mark.parametrize(
    "content",
    [
        *("", "[1]", '{"outcomes": [{"won_with": "x"}]}'),
        json.dumps({**play([], []).to_json(), "outcomes": [{"well_formed_with": []}]}),
        json.dumps({**play([], []).to_json(), "panel_sha256": "another"}),
    ],
)
def test_what_is_no_report_or_was_changed_is_refused_in_words(tmp_path: Path, content: str) -> None:
    (tmp_path / "report.json").write_text(content)
    with pytest.raises(ConfigError, match=r"no paired report|panel's hash"):
        PairedReport.load(tmp_path / "report.json")


def test_changes_pair_the_tasks() -> None:
    before, after = play(["heat/0"], []), play(["heat/0"], ["heat/0", "heat/1", "heat/2"])
    changes = compare_reports(before, after, skill=False)
    assert (changes["heat"].before, changes["heat"].after, changes["heat"].change) == (0.0, 1.0, 1.0)
    assert changes["heat"].interval.low > 0.0
    assert changes["cool"].change == 0.0
    assert changes["overall"].change == pytest.approx(0.6)
    assert compare_reports(before, after, skill=True)["overall"].change == 0.0


@pytest.mark.parametrize("tasks", [["heat/0", "heat/0"], []])
def test_a_panel_names_each_task_once(tasks: list[str]) -> None:
    with pytest.raises(ConfigError, match="each task once and is not empty"):
        play([], [], tasks)


@pytest.mark.parametrize(
    ("part", "fault"), [(slice(0, None, 2), "Expected 10 episodes"), (slice(None, None, -1), "with the skill and then")]
)
def test_bad_players_are_named(part: slice, fault: str) -> None:
    with pytest.raises(ConfigError, match=fault):
        paired_evaluation(Player(part=part), TASKS, seed=0, sampling=Sampling())


# Replies and commands ------------------------------------------------------------------------------------------------


def acting(well_formed: float, admissible: float) -> PairedReport:
    """Ten turns a condition, of which shares with the skill are good."""
    good = ArmOutcome(False, 0.0, 10, "", 10, 10)
    poor = replace(good, well_formed=round(10 * well_formed), admissible=round(10 * admissible))
    return PairedReport((PairedOutcome("a", "heat", poor, good),), 0, {})


def test_rates_of_replies_and_commands_stand_in_report_and_table() -> None:
    report = acting(0.9, 0.3)
    found = {"with": {"well_formed": 0.9, "admissible": 0.3}, "without": {"well_formed": 1.0, "admissible": 1.0}}
    assert report.actions() == found == report.to_json()["actions"]
    assert "admissible        30.0               100.0" in report_table(report)
    assert "Warning: odd" in report_table(replace(report, warning="odd"))


def test_every_turn_counts_the_same() -> None:
    turns = [replace(turn, format_valid=i > 0, action_valid=False) for i, turn in enumerate(episode().turns)]
    spoilt = replace(episode("heat/0", condition=1), turns=tuple(turns))
    pair = [Trajectory(each, [], 0) for each in (spoilt, episode("heat/0", condition=0))]
    report = paired_evaluation(SimpleNamespace(collect=lambda *_, **__: pair), ["heat/0"], seed=0, sampling=Sampling())
    assert report.actions()["with"] == {"well_formed": 0.5, "admissible": 0.0}


@pytest.mark.parametrize(
    ("report", "told"),
    [
        (acting(1.0, 0.5), ""),
        (acting(0.4, 0.1), "40 % of the policy's replies .* Likely cause: .*chat="),
        (acting(0.9, 0.1), "10 % of the policy's commands .* Likely cause: .*env="),
        (PairedReport((), 0, {}), ""),
    ],
)
def test_below_one_half_a_warning_names_the_likely_cause(report: PairedReport, told: str) -> None:
    import re

    assert re.search(told, action_warning(report)) if told else action_warning(report) == ""
    assert not told or action_warning(report, "the moon").endswith("Likely cause: the moon.")


# Several attempts ----------------------------------------------------------------------------------------------------


@given(st.integers(1, 9).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_pass_at_k_is_the_share_of_the_draws_of_k_that_hold_a_success(case: tuple[int, int, int]) -> None:
    n, successes, k = case
    draws = list(itertools.combinations([i < successes for i in range(n)], k))
    assert pass_at_k(successes, n, k) == pytest.approx(sum(map(any, draws)) / len(draws))


@pytest.mark.parametrize("arguments", [(1, 3, 4), (4, 3, 1), (1, 3, 0)])
def test_pass_at_k_needs_enough_episodes(arguments: tuple[int, int, int]) -> None:
    with pytest.raises(ConfigError, match="pass@k needs"):
        pass_at_k(*arguments)


WON = {"a": [(True, True), (True, False)], "b": [(True, False), (False, False)]}
REPEATED = tuple(
    PairedOutcome(task, "heat", ArmOutcome(with_, float(with_), 3), ArmOutcome(without, 0.0, 3), attempt)
    for attempt in (0, 1)
    for task, ((with_, without)) in ((task, WON[task][attempt]) for task in WON)
)


def test_rates_are_over_all_pairs_and_intervals_over_tasks() -> None:
    report = PairedReport(REPEATED, 0, {})
    assert (report.attempts, report.tasks, report.overall.n) == (2, ("a", "b"), 2)
    assert (report.overall.sr_with, report.overall.sr_without, report.overall.gap) == (0.75, 0.25, 0.5)
    assert report.overall.sr_without_interval.high - report.overall.sr_without_interval.low >= 0.5
    assert PairedCounts.of([o for o in REPEATED if o.attempt == 0]).n == report.overall.n
    repeated = PairedCounts.of(o for o in REPEATED for _ in range(50))
    assert report.overall.gap_interval.low < repeated.gap_interval.low


def test_pass_rates_grow_with_k_and_are_in_the_report() -> None:
    rates = pass_rates(REPEATED, 2)
    assert list(rates) == ["1", "2"]
    assert (rates["1"]["with"]["rate"], rates["2"]["with"]["rate"]) == (0.75, 1.0)
    assert (rates["1"]["without"]["rate"], rates["2"]["without"]["rate"]) == (0.25, 0.5)
    written = json.loads(json.dumps(PairedReport(REPEATED, 0, {}).to_json()))
    assert written["pass_at"] == rates
    assert PairedReport.from_json(written) == PairedReport(REPEATED, 0, {})


def test_only_reports_with_as_many_attempts_are_compared() -> None:
    once, twice = PairedReport(REPEATED[:2], 0, {}), PairedReport(REPEATED, 0, {})
    assert compare_reports(twice, twice, skill=True)["overall"].n == 2
    with pytest.raises(ConfigError, match="1 and 2 times"):
        compare_reports(once, twice, skill=True)


WON_IN = {("a", 1): 1, ("a", 0): 2, ("b", 1): 3, ("b", 0): None}


def tried(task: str, condition: int, trial: int) -> Episode:
    return episode(task, condition=condition, won=WON_IN[task, condition] == trial)


def test_only_failures_are_tried_again_each_in_its_condition() -> None:
    episodes = tuple(tried(task, condition, 1) for task, condition in WON_IN)
    arms = [ArmOutcome(each.won, float(each.won), 1) for each in episodes]
    outcomes = (PairedOutcome("a", "heat", arms[0], arms[1]), PairedOutcome("b", "heat", arms[2], arms[3]))
    asked, failures = [], []

    def again(trial: int, tasks: Sequence[tuple[str, int]]) -> list[Episode]:
        asked.append((trial, tuple(tasks)))
        return [tried(task, condition, trial) for task, condition in tasks]

    first = PairedReport(outcomes, 0, {}, episodes=episodes)
    report = play_trials(first, 4, again, lambda failed: failures.append(len(failed)))
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
    arm = ArmOutcome(True, 1.0, 1)
    whole = episode("a", condition=1), episode("a", condition=0)
    report = PairedReport((PairedOutcome("a", "heat", arm, arm),), 0, {}, episodes=whole)
    found = play_trials(report, trials, lambda *_: pytest.fail("somebody was asked"), lambda failed: None)
    assert found.success(True) == found.success(False) == [1.0] * trials


# Scores, cuts and identity -------------------------------------------------------------------------------------------


def shopping(
    task: str, score: float, best: float | None = None, cut: str = "", kind: str = "shopping"
) -> PairedOutcome:
    bought, nothing = ArmOutcome(score == 1.0, score, 5), ArmOutcome(False, 0.0, 12, cut)
    return PairedOutcome(task, kind, bought, nothing, best_score=best)


GOALS = (shopping("a", 1.0, best=1.0), shopping("b", 0.5, best=1.0), shopping("c", 0.25, best=0.75))
PLAIN = PairedOutcome("a", "heat", ArmOutcome(True, 1.0, 5), ArmOutcome(False, 0.0, 50))


def test_the_mean_score_stands_beside_success_with_and_without_goals_out_of_reach() -> None:
    scores = mean_scores(GOALS)
    assert scores["all"]["with"]["mean"] == pytest.approx(1.75 / 3)
    assert scores["reachable"]["tasks"] == 2
    assert scores["reachable"]["with"]["mean"] == 0.75
    assert scores["all"]["without"]["mean"] == 0.0
    low, high = scores["all"]["with"]["interval"]
    assert low <= scores["all"]["with"]["mean"] <= high
    text = report_table(PairedReport(GOALS, 0, {}))
    assert "score         3   58.3" in text
    assert "reachable     2   75.0" in text


def test_scores_are_shown_only_where_they_say_more_than_success() -> None:
    assert graded(GOALS)
    assert not graded([PLAIN])
    assert mean_scores([PLAIN])["reachable"] is None
    assert PairedReport((PLAIN,), 0, {}).to_json()["scores"] is None


def test_cuts_by_the_context_are_counted_apart_and_warned_about() -> None:
    report = PairedReport((*GOALS, shopping("d", 1.0, cut="context"), shopping("e", 1.0, cut="steps")), 0, {})
    assert report.cuts("context") == {"with": 0, "without": 1}
    assert report.to_json()["cut_by_steps"] == {"with": 0, "without": 1}
    assert "max_context=4096" in cut_warning(report, 4096)
    assert "0 of 5 episodes with the skill and 1 of 5 without" in cut_warning(report, 4096)
    assert cut_warning(PairedReport(GOALS, 0, {}), 4096) == ""
    assert "Cut by the context: 0 episodes with skills, 1 without." in report_table(report)


def test_the_panels_hash_covers_the_tasks_their_order_and_what_identifies_them() -> None:
    def report(outcomes: tuple[PairedOutcome, ...] = GOALS, **identity: Any) -> PairedReport:
        return PairedReport(outcomes, 0, {}, identity)

    reports = (report(), report(GOALS[::-1]), report(prices="a"), report(prices="b"))
    assert len({each.panel_sha256 for each in reports}) == 4
    assert PairedReport.from_json(report(prices="a").to_json()).panel_sha256 == report(prices="a").panel_sha256
    with pytest.raises(ConfigError, match="different panels"):
        compare_reports(report(prices="a"), report(prices="b"), skill=True)


# A validation in the metrics -----------------------------------------------------------------------------------------

VALIDATED = PairedReport((shopping("x", 0.5, cut="context", kind="a"), shopping("y", 1.0, kind="b")), 0, {})


def test_a_record_tells_rates_scores_cuts_and_the_rule_of_retirement_and_moves_nothing() -> None:
    method = Method(get_recipe("skillc", tau_retire=0.05), ("a", "b"), 30)
    method.validate(VALIDATED.sr_with, VALIDATED.sr_without, 0)
    before = method.state_dict()
    record = validation_record(VALIDATED, method, 0)
    assert (record["overall_with"], record["overall_without"], record["n"]) == (0.5, 0.0, {"a": 1, "b": 1})
    assert (record["score_with"], record["score_without"]) == (0.75, 0.0)
    assert record["cut_by_context"] == {"with": 0.0, "without": 0.5}
    assert record["actions"] == VALIDATED.actions()
    assert record["retirement"] == {"by": ["gap", "budget"], "threshold": 0.05, "capacity": [2, 1, 0]}
    assert record["gap_smoothed"]["b"] == pytest.approx(0.3)
    assert validation_record(VALIDATED, method, 0) == record
    assert method.state_dict() == before
    plain = validation_record(PairedReport((PLAIN,), 0, {}), Method(get_recipe("grpo"), ("heat",), 30), 10)
    assert "score_with" not in plain
    assert plain["retirement"]["by"] == []
