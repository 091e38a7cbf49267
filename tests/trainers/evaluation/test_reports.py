"""Reports of paired evaluations: rates, intervals, several attempts, scores, actions, cuts, identity, comparison."""

import itertools
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc_gym.episodes import Episode
from skillc_gym.errors import ConfigError, MissingDataError
from tests.trainers.toys import episode
from trainers import evaluation
from trainers.base import Sampling, Trajectory
from trainers.evaluation import (
    ArmOutcome,
    PairedCounts,
    PairedOutcome,
    PairedReport,
    compare_reports,
    paired_evaluation,
)
from trainers.evaluation.outcomes import pass_at_k
from trainers.recipes import get_recipe
from trainers.recipes.method import Method

TASKS = ["heat/0", "heat/1", "heat/2", "cool/0", "cool/1"]


class Player:
    """Solves with the skill what is listed, and without it what is listed; a part of the episodes may be kept back."""

    def __init__(self, with_: Sequence[str] = (), without: Sequence[str] = (), part: slice = slice(None)) -> None:
        self.solved, self.part, self.calls = {1: with_, 0: without}, part, []

    def collect(self, task_ids: Sequence[str], n_plus: Sequence[int], group_size: int, *, seed: int, sampling: Any):
        self.calls.append((list(n_plus), group_size, seed))
        return [Trajectory(self.episode(task, c), [], 0) for task in task_ids for c in (1, 0)][self.part]

    def episode(self, task: str, c: int) -> Episode:
        kind, won = task.split("/", maxsplit=1)[0], task in self.solved[c]
        return episode(task, kind=kind, condition=c, won=won, actions=["look"] * (5 - 2 * c))


def play(with_: Sequence[str], without: Sequence[str], tasks: Sequence[str] = TASKS, **kept: slice) -> PairedReport:
    return paired_evaluation(Player(with_, without, **kept), tasks, seed=3, sampling=Sampling(0.4))


def of(outcomes: tuple[PairedOutcome, ...], **identity: Any) -> PairedReport:
    return PairedReport(outcomes, 0, {}, identity)


def test_rates_gaps_and_counts() -> None:
    player = Player(["heat/0", "heat/1", "cool/0"], ["heat/0", "cool/1"])
    report = paired_evaluation(player, TASKS, seed=11, sampling=Sampling())
    assert player.calls == [([1] * 5, 2, 11)]
    assert (report.overall.sr_with, report.overall.sr_without) == (0.6, 0.4)
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
    assert PairedReport.load(tmp_path / "report.json") == report
    written = json.loads((tmp_path / "report.json").read_text())
    assert written == json.loads(json.dumps(report.to_json()))
    assert written["sampling"]["temperature"] == 0.4
    assert written["overall"]["gap_interval"] == report.overall.gap_interval.to_json()


def test_reports_of_older_versions_are_read() -> None:
    new = PairedReport(GOALS[:1], 3, {"greedy": False}).to_json()
    kept = ("task_id", "task_type", "won_with", "won_without", "score_with", "score_without", "steps_with")
    old = {key: new[key] for key in ("panel_sha256", "seed", "sampling")}
    old["outcomes"] = [{**{key: o[key] for key in kept}, "steps_without": 12} for o in new["outcomes"]]
    report = PairedReport.from_json(old)
    assert report.outcomes[0].without_skill == ArmOutcome(False, 0.0, 12)
    assert report.actions()["with"] == {"well_formed": None, "admissible": None}
    assert "well-formed         --" in evaluation.report_table(report)


@pytest.mark.parametrize(
    "content",
    [
        *("", "[1]", '{"outcomes": [{"won_with": "x"}]}'),
        json.dumps({**play([], []).to_json(), "outcomes": [{"well_formed_with": []}]}),
        json.dumps(play([True], [True]).to_json()).replace('"well_formed_with": ', '"well_formed_with": 1' + "0" * 400),
        json.dumps({**play([], []).to_json(), "panel_sha256": "another"}),
    ],
)
def test_what_is_no_report_or_was_changed_is_refused_in_words(tmp_path: Path, content: str) -> None:
    (tmp_path / "report.json").write_text(content)
    with pytest.raises(ConfigError, match=r"no paired report|panel's hash"):
        PairedReport.load(tmp_path / "report.json")
    with pytest.raises(MissingDataError, match=r"other.json is not there.*skillc evaluate"):
        PairedReport.load(tmp_path / "other.json")


def test_changes_pair_the_tasks() -> None:
    before, after = play(["heat/0"], []), play(["heat/0"], ["heat/0", "heat/1", "heat/2"])
    changes = compare_reports(before, after, skill=False)
    assert (changes["heat"].before, changes["heat"].after, changes["heat"].change) == (0.0, 1.0, 1.0)
    assert changes["heat"].interval.low > 0.0
    assert changes["cool"].change == 0.0
    assert changes["overall"].change == pytest.approx(0.6)
    assert compare_reports(before, after, skill=True)["overall"].change == 0.0


@pytest.mark.parametrize(
    ("call", "fault"),
    [
        (lambda: play([], [], ["heat/0"] * 2), "each task once and is not empty"),
        (lambda: play([], [], []), "each task once and is not empty"),
        (lambda: play([], [], part=slice(None, None, -1)), "with the skill and then"),
        *((lambda c=c: pass_at_k(*c), "pass@k needs") for c in ((1, 3, 4), (4, 3, 1), (1, 3, 0))),
        (lambda: compare_reports(of(REPEATED[:2]), of(REPEATED), skill=True), "1 and 2 times"),
        (lambda: compare_reports(of(GOALS, prices="a"), of(GOALS, prices="b"), skill=True), "different panels"),
    ],
)
def test_bad_panels_players_numbers_and_pairs_of_reports_are_refused(call: Callable[[], Any], fault: str) -> None:
    with pytest.raises(ConfigError, match=fault):
        call()


# Replies and commands ------------------------------------------------------------------------------------------------


def acting(well_formed: float, admissible: float) -> PairedReport:
    """Ten turns a condition, of which shares with the skill are good."""
    good = ArmOutcome(False, 0.0, 10, "", 10, 10)
    poor = replace(good, well_formed=round(10 * well_formed), admissible=round(10 * admissible))
    return of((PairedOutcome("a", "heat", poor, good),))


def test_rates_of_replies_and_commands_stand_in_report_and_table() -> None:
    report = acting(0.9, 0.3)
    found = {"with": {"well_formed": 0.9, "admissible": 0.3}, "without": {"well_formed": 1.0, "admissible": 1.0}}
    assert report.actions() == found == report.to_json()["actions"]
    assert "admissible        30.0               100.0" in evaluation.report_table(report)
    assert "Warning: odd" in evaluation.report_table(replace(report, warning="odd"))


def test_every_turn_counts_the_same() -> None:
    turns = [replace(turn, format_valid=i > 0, action_valid=False) for i, turn in enumerate(episode().turns)]
    spoilt = replace(episode("heat/0", condition=1), turns=tuple(turns))
    pair = [Trajectory(each, [], 0) for each in (spoilt, episode("heat/0", condition=0))]
    report = paired_evaluation(SimpleNamespace(collect=lambda *_, **__: pair), ["heat/0"], seed=0, sampling=Sampling())
    assert report.actions()["with"] == {"well_formed": 0.5, "admissible": 0.0}


@pytest.mark.parametrize(
    ("report", "told"),
    [
        (acting(1.0, 0.5), "^$"),
        (acting(0.4, 0.1), "40 % of the policy's replies .* Likely cause: .*chat="),
        (acting(0.9, 0.1), "10 % of the policy's commands .* Likely cause: .*env="),
        (PairedReport((), 0, {}), "^$"),
    ],
)
def test_below_one_half_a_warning_names_the_likely_cause(report: PairedReport, told: str) -> None:
    assert re.search(told, evaluation.action_warning(report))
    assert told == "^$" or evaluation.action_warning(report, "the moon").endswith("Likely cause: the moon.")


# Several attempts ----------------------------------------------------------------------------------------------------


@given(st.integers(1, 9).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_pass_at_k_is_the_share_of_the_draws_of_k_that_hold_a_success(case: tuple[int, int, int]) -> None:
    n, successes, k = case
    draws = list(itertools.combinations([i < successes for i in range(n)], k))
    assert pass_at_k(successes, n, k) == pytest.approx(sum(map(any, draws)) / len(draws))


WON = [("a", 0, True, True), ("b", 0, True, False), ("a", 1, True, False), ("b", 1, False, False)]
REPEATED = tuple(
    PairedOutcome(task, "heat", ArmOutcome(with_, float(with_), 3), ArmOutcome(without, 0.0, 3), attempt)
    for task, attempt, with_, without in WON
)


def test_rates_are_over_all_pairs_and_intervals_over_tasks() -> None:
    report = of(REPEATED)
    assert (report.attempts, report.tasks, report.overall.n) == (2, ("a", "b"), 2)
    assert (report.overall.sr_with, report.overall.sr_without, report.overall.gap) == (0.75, 0.25, 0.5)
    assert report.overall.sr_without_interval.high - report.overall.sr_without_interval.low >= 0.5
    assert PairedCounts.of([o for o in REPEATED if o.attempt == 0]).n == report.overall.n
    repeated = PairedCounts.of(o for o in REPEATED for _ in range(50))
    assert report.overall.gap_interval.low < repeated.gap_interval.low
    assert compare_reports(report, report, skill=True)["overall"].n == 2


def test_pass_rates_grow_with_k_and_are_in_the_report() -> None:
    rates = evaluation.pass_rates(REPEATED, 2)
    assert list(rates) == ["1", "2"]
    assert (rates["1"]["with"]["rate"], rates["2"]["with"]["rate"]) == (0.75, 1.0)
    assert (rates["1"]["without"]["rate"], rates["2"]["without"]["rate"]) == (0.25, 0.5)
    written = json.loads(json.dumps(of(REPEATED).to_json()))
    assert written["pass_at"] == rates
    assert PairedReport.from_json(written) == of(REPEATED)


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

    first = replace(of(outcomes), episodes=episodes)
    report = evaluation.play_trials(first, 4, again, lambda failed: failures.append(len(failed)))
    assert asked == [(2, (("a", 0), ("b", 1), ("b", 0))), (3, (("b", 1), ("b", 0))), (4, (("b", 0),))]
    assert failures == [3, 2, 1]
    assert (report.success(True), report.success(False)) == ([0.5, 0.5, 1.0, 1.0], [0.0, 0.5, 0.5, 0.5])
    assert {(o.task_id, o.with_skill, o.without_skill) for o in report.outcomes} == {("a", 1, 2), ("b", 3, None)}
    assert [len(episodes) for episodes in report.later] == [3, 2, 1]
    found = report.to_json()["with"][2]
    assert (found["trial"], found["solved"], found["success"]) == (3, 2, 1.0)
    assert found["interval"][0] < 1.0


@pytest.mark.parametrize("trials", [1, 2])
def test_nobody_is_asked_when_all_is_won_or_there_is_one_trial(trials: int) -> None:
    arm = ArmOutcome(True, 1.0, 1)
    whole = episode("a", condition=1), episode("a", condition=0)
    report = replace(of((PairedOutcome("a", "heat", arm, arm),)), episodes=whole)
    found = evaluation.play_trials(report, trials, lambda *_: pytest.fail("somebody was asked"), lambda failed: None)
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
    scores = evaluation.mean_scores(GOALS)
    assert scores["all"]["with"]["mean"] == pytest.approx(1.75 / 3)
    assert scores["reachable"]["tasks"] == 2
    assert scores["reachable"]["with"]["mean"] == 0.75
    assert scores["all"]["without"]["mean"] == 0.0
    low, high = scores["all"]["with"]["interval"]
    assert low <= scores["all"]["with"]["mean"] <= high
    text = evaluation.report_table(of(GOALS))
    assert "score         3   58.3" in text
    assert "reachable     2   75.0" in text
    assert (evaluation.mean_scores([PLAIN])["reachable"], of((PLAIN,)).to_json()["scores"]) == (None, None)


def test_cuts_by_the_context_are_counted_apart_and_warned_about() -> None:
    report = of((*GOALS, shopping("d", 1.0, cut="context"), shopping("e", 1.0, cut="steps")))
    assert report.cuts("context") == {"with": 0, "without": 1}
    assert report.to_json()["cut_by_steps"] == {"with": 0, "without": 1}
    assert "max_context=4096" in evaluation.cut_warning(report, 4096)
    assert "0 of 5 episodes with the skill and 1 of 5 without" in evaluation.cut_warning(report, 4096)
    assert evaluation.cut_warning(of(GOALS), 4096) == ""
    assert "Cut by the context: 0 episodes with skills, 1 without." in evaluation.report_table(report)


def test_the_panels_hash_covers_the_tasks_their_order_and_what_identifies_them() -> None:
    reports = (of(GOALS), of(GOALS[::-1]), of(GOALS, prices="a"), of(GOALS, prices="b"))
    assert len({each.panel_sha256 for each in reports}) == 4
    assert PairedReport.from_json(reports[2].to_json()).panel_sha256 == reports[2].panel_sha256


# A validation in the metrics -----------------------------------------------------------------------------------------


def test_a_record_tells_rates_scores_cuts_and_the_rule_of_retirement_and_moves_nothing() -> None:
    validated = of((shopping("x", 0.5, cut="context", kind="a"), shopping("y", 1.0, kind="b")))
    method = Method(get_recipe("skillc", tau_retire=0.05), ("a", "b"), 30)
    method.curriculum.update(validated.sr_with, validated.sr_without, 0)
    before = method.state_dict()
    record = evaluation.validation_record(validated, method, 0)
    assert (record["overall_with"], record["overall_without"], record["n"]) == (0.5, 0.0, {"a": 1, "b": 1})
    assert (record["score_with"], record["score_without"]) == (0.75, 0.0)
    assert record["cut_by_context"] == {"with": 0.0, "without": 0.5}
    assert record["actions"] == validated.actions()
    assert record["retirement"] == {"by": ["gap", "budget"], "threshold": 0.05, "capacity": [2, 1, 0]}
    assert record["gap_smoothed"]["b"] == pytest.approx(0.3)
    assert evaluation.validation_record(validated, method, 0) == record
    assert method.state_dict() == before
    plain = evaluation.validation_record(of((PLAIN,)), Method(get_recipe("grpo"), ("heat",), 30), 10)
    assert "score_with" not in plain
    assert plain["retirement"]["by"] == []
