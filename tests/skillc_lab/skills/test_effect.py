"""The verdict on skills, and the files that the page on evaluation describes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc_lab.skills.effect import SkillTest
from skillc_lab.skills.evals import SkillEval, cases_of, next_iteration, write_workspace
from trainers.evaluation import ArmOutcome, PairedOutcome, PairedReport


def arm(won: bool, tokens: int = 10, seconds: float | None = 2.0) -> ArmOutcome:
    return ArmOutcome(won, float(won), 3, prompt_tokens=tokens, completion_tokens=5, seconds=seconds)


def report(both: int, with_: int, without: int, neither: int, **how: Any) -> PairedReport:
    wins = [(True, True)] * both + [(True, False)] * with_ + [(False, True)] * without + [(False, False)] * neither
    outcomes = (
        PairedOutcome(f"t/{n}", ("heat", "cool")[n % 2], arm(won, 30, **how), arm(other, **how))
        for n, (won, other) in enumerate(wins)
    )
    return PairedReport(tuple(outcomes), 0, {})


@pytest.mark.parametrize(
    ("counts", "margin", "verdict", "decided"),
    [
        ((10, 40, 0, 10), 0.05, "pass", True),
        ((10, 0, 40, 10), 0.05, "fail", True),
        ((10, 40, 0, 10), 0.6, "neutral", False),
        ((200, 1, 1, 200), 0.05, "neutral", True),
        ((2, 2, 1, 2), 0.05, "neutral", False),
        ((10, 40, 0, 10), 0.0, "pass", True),
    ],
)
def test_the_verdict_is_of_the_whole_interval(
    counts: tuple[int, int, int, int], margin: float, verdict: str, decided: bool
) -> None:
    overall = SkillTest(report(*counts), margin).overall
    assert (overall.verdict, overall.decided) == (verdict, decided)
    assert overall.words().startswith(verdict)
    assert ("undecided" in overall.words()) is not decided


@given(st.tuples(*[st.integers(0, 40)] * 4).filter(lambda counts: sum(counts) > 1), st.floats(0, 0.99))
def test_to_swap_the_conditions_turns_the_verdict_around(counts: tuple[int, int, int, int], margin: float) -> None:
    both, first, second, neither = counts
    one = SkillTest(report(*counts), margin).overall
    other = SkillTest(report(both, second, first, neither), margin).overall
    assert {"pass": "fail", "fail": "pass", "neutral": "neutral"}[one.verdict] == other.verdict
    assert one.detectable == other.detectable


def test_types_have_wider_intervals_and_tokens_their_means() -> None:
    test = SkillTest(report(10, 40, 0, 10), 0.05)
    heat = test.per_type["heat"]
    assert heat.interval.low < heat.counts.gap_interval.low
    assert heat.tokens == (35, 15)
    assert "pass" in test.table().splitlines()[-1]


def test_the_files_lie_as_the_page_on_evaluation_has_them(tmp_path: Path) -> None:
    played = report(1, 2, 0, 1)
    test = SkillTest(played, 0.05)
    write_workspace(test, cases_of(played, {}), tmp_path, {"library": "own"})
    heat = tmp_path / "eval-heat" / "with_skill"
    assert (heat / "outputs" / "transcripts.jsonl").exists()
    assert json.loads((heat / "timing.json").read_text()) == {"total_tokens": 70, "duration_ms": 4000}
    assert json.loads((heat / "grading.json").read_text())["summary"] == {
        "passed": 2,
        "failed": 0,
        "total": 2,
        "pass_rate": 1.0,
    }
    found = json.loads((tmp_path / "benchmark.json").read_text())
    assert found["run_summary"]["delta"] == {"pass_rate": 0.5, "time_seconds": 0.0, "tokens": 20.0}
    assert found["run_summary"]["with_skill"]["tokens"] == {"mean": 35.0, "stddev": 0.0}
    assert found["skill_test"]["per_type"].keys() == {"heat", "cool"}


def test_a_skills_own_cases_have_folders_of_their_own_and_keep_what_nobody_graded(tmp_path: Path) -> None:
    played = report(1, 1, 0, 0, seconds=None)
    cases = cases_of(played, {SkillEval("heat-1", "t/0", expected_output="Hot.", assertions=("Is hot",)): ["t/0"]})
    write_workspace(SkillTest(played, 0.05), cases, tmp_path, {})
    graded = json.loads((tmp_path / "eval-heat-1" / "without_skill" / "grading.json").read_text())
    assert graded["not_graded"] == ["Is hot"]
    assert [(each["text"], each["passed"]) for each in graded["assertion_results"]] == [("t/0 is solved: Hot.", True)]
    assert json.loads((tmp_path / "eval-heat-1" / "with_skill" / "timing.json").read_text())["duration_ms"] is None
    assert not (tmp_path / "eval-cool").exists()


def test_the_next_iteration_is_the_first_without_results(tmp_path: Path) -> None:
    assert next_iteration(tmp_path).name == "iteration-1"
    (tmp_path / "iteration-1").mkdir()
    assert next_iteration(tmp_path).name == "iteration-1"
    (tmp_path / "iteration-1" / "benchmark.json").touch()
    assert next_iteration(tmp_path).name == "iteration-2"
