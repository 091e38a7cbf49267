"""Mean scores, cut episodes and the panel's identity in a report."""

from __future__ import annotations

from typing import Any

import pytest

from skillc_gym.errors import ConfigError
from trainers.evaluation import (
    ArmOutcome,
    PairedOutcome,
    PairedReport,
    compare_reports,
    cut_warning,
    graded,
    mean_scores,
)
from trainers.evaluation.table import table


def shopping(task: str, score: float, best: float | None = None, cut: str = "") -> PairedOutcome:
    bought, nothing = ArmOutcome(score == 1.0, score, 5), ArmOutcome(False, 0.0, 12, cut)
    return PairedOutcome(task, "shopping", bought, nothing, best_score=best)


GOALS = (shopping("a", 1.0, best=1.0), shopping("b", 0.5, best=1.0), shopping("c", 0.25, best=0.75))


def test_the_mean_score_stands_beside_success_with_and_without_goals_out_of_reach() -> None:
    scores = mean_scores(GOALS)
    assert scores["all"]["with"]["mean"] == pytest.approx(1.75 / 3)
    assert scores["reachable"]["tasks"] == 2
    assert scores["reachable"]["with"]["mean"] == 0.75
    assert scores["all"]["without"]["mean"] == 0.0
    low, high = scores["all"]["with"]["interval"]
    assert low <= scores["all"]["with"]["mean"] <= high
    text = table(PairedReport(GOALS, 0, {}))
    assert "score         3   58.3" in text
    assert "reachable     2   75.0" in text


def test_scores_are_shown_only_where_they_say_more_than_success() -> None:
    assert graded(GOALS)
    plain = [PairedOutcome("a", "heat", ArmOutcome(True, 1.0, 5), ArmOutcome(False, 0.0, 50))]
    assert not graded(plain)
    assert mean_scores(plain)["reachable"] is None
    assert PairedReport(tuple(plain), 0, {}).to_json()["scores"] is None


def test_cuts_by_the_context_are_counted_apart_and_warned_about() -> None:
    report = PairedReport((*GOALS, shopping("d", 1.0, cut="context"), shopping("e", 1.0, cut="steps")), 0, {})
    assert report.cuts("context") == {"with": 0, "without": 1}
    assert report.to_json()["cut_by_steps"] == {"with": 0, "without": 1}
    warning = cut_warning(report, 4096)
    assert "max_context=4096" in warning
    assert "0 of 5 episodes with the skill and 1 of 5 without" in warning
    assert cut_warning(PairedReport(GOALS, 0, {}), 4096) == ""
    assert "Cut by the context: 0 episodes with skills, 1 without." in table(report)


def test_the_panels_hash_covers_what_identifies_a_task() -> None:
    def report(**identity: Any) -> PairedReport:
        return PairedReport(GOALS, 0, {}, identity)

    hashes = {report().panel_sha256, report(prices="a").panel_sha256, report(prices="b").panel_sha256}
    assert len(hashes) == 3
    assert PairedReport.from_json(report(prices="a").to_json()).panel_sha256 == report(prices="a").panel_sha256
    with pytest.raises(ConfigError, match="different panels"):
        compare_reports(report(prices="a"), report(prices="b"), skill=True)


def test_reports_of_older_versions_are_read() -> None:
    new = PairedReport(GOALS[:1], 3, {"greedy": False}).to_json()
    kept = ("task_id", "task_type", "won_with", "won_without", "score_with", "score_without", "steps_with")
    old = {key: new[key] for key in ("panel_sha256", "seed", "sampling")}
    old["outcomes"] = [{**{key: o[key] for key in kept}, "steps_without": 12} for o in new["outcomes"]]
    assert PairedReport.from_json(old).outcomes[0].without_skill == ArmOutcome(False, 0.0, 12)


@pytest.mark.parametrize("content", ["", "[1]", "{", '{"outcomes": 3}', '{"outcomes": [{"won_with": "x"}]}'])
def test_what_is_no_report_is_refused_in_words(tmp_path: Any, content: str) -> None:
    (tmp_path / "report.json").write_text(content)
    with pytest.raises(ConfigError, match="no paired report"):
        PairedReport.load(tmp_path / "report.json")
