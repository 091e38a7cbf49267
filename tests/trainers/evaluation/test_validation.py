"""What a validation leaves in the metrics."""

from __future__ import annotations

import pytest

from trainers.evaluation import ArmOutcome, PairedOutcome, PairedReport, validation_record
from trainers.recipes import get_recipe
from trainers.recipes.method import Method


def outcome(task: str, kind: str, score: float, cut: str = "") -> PairedOutcome:
    return PairedOutcome(task, kind, ArmOutcome(True, 1.0, 3), ArmOutcome(score == 1.0, score, 9, cut))


def test_a_record_tells_rates_scores_cuts_and_the_rule_of_retirement() -> None:
    method = Method(get_recipe("skillc", tau_retire=0.05), ("a", "b"), 30)
    report = PairedReport((outcome("x", "a", 0.5, "context"), outcome("y", "b", 1.0)), 0, {})
    method.validate(report.sr_with, report.sr_without, 0)
    record = validation_record(report, method, 0)
    assert (record["overall_with"], record["overall_without"], record["n"]) == (1.0, 0.5, {"a": 1, "b": 1})
    assert (record["score_with"], record["score_without"]) == (1.0, 0.75)
    assert record["cut_by_context"] == {"with": 0.0, "without": 0.5}
    assert record["retirement"] == {"by": ["gap", "budget"], "threshold": 0.05, "capacity": [2, 1, 0]}
    assert record["gap_smoothed"]["a"] == pytest.approx(0.3)


def test_describing_a_validation_moves_nothing() -> None:
    method = Method(get_recipe("skillc"), ("a", "b"), 30)
    before = method.state_dict()
    report = PairedReport((outcome("x", "a", 0.5), outcome("y", "b", 1.0)), 0, {})
    assert validation_record(report, method, 0) == validation_record(report, method, 0)
    assert method.state_dict() == before


def test_scores_that_say_no_more_than_success_are_left_out() -> None:
    report = PairedReport((outcome("x", "a", 0.0),), 0, {})
    record = validation_record(report, Method(get_recipe("grpo"), ("a",), 30), 10)
    assert "score_with" not in record
    assert record["retirement"]["by"] == []
