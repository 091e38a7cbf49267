"""The results of a skill's test as the page on evaluation at agentskills.io lays them out.

Each test case has a folder with ``with_skill/`` and ``without_skill/``, and in each of them ``outputs/`` (what was said
and done), ``timing.json`` and ``grading.json``; ``benchmark.json`` sums them up. The environment grades: an episode is
one assertion, that its task is solved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from skillc_gym.envs.registry import short_type
from skillc_gym.episodes import write_jsonl
from skillc_lab.skills.effect import SkillTest
from skillc_lab.skills.evals import SkillEval
from trainers.evaluation import ArmOutcome, PairedOutcome, PairedReport
from trainers.tracking import make_folder, write_json

BENCHMARK = "benchmark.json"
_ARMS = {"with_skill": True, "without_skill": False}


@dataclass(frozen=True)
class TestCase:
    """A test case by its name, its tasks' ids, what success looks like, and assertions, which are not graded."""

    name: str
    tasks: frozenset[str]
    expected: str = ""
    assertions: tuple[str, ...] = ()


def cases_of(report: PairedReport, evals: Mapping[SkillEval, Sequence[str]]) -> list[TestCase]:
    """The skill's own test cases with the tasks of each, or, where it brings none, one per task type."""
    if evals:
        return [
            TestCase(each.name, frozenset(tasks), each.expected_output, each.assertions)
            for each, tasks in evals.items()
        ]
    kinds = report.per_type
    played = {kind: frozenset(each.task_id for each in report.outcomes if each.task_type == kind) for kind in kinds}
    return [TestCase(short_type(kind).replace("/", "-"), tasks) for kind, tasks in played.items()]


def next_iteration(workspace: Path) -> Path:
    """The first ``iteration-N`` without results; one that was interrupted goes on."""
    number = 1
    while (workspace / f"iteration-{number}" / BENCHMARK).exists():
        number += 1
    return workspace / f"iteration-{number}"


def write_workspace(test: SkillTest, cases: Sequence[TestCase], out: Path, about: Mapping[str, Any]) -> None:
    """Writes an iteration: what was played for each case, and ``benchmark.json`` with the figures and ``about``."""
    for case in cases:
        for arm, skill in _ARMS.items():
            _write_arm(test.report, case, skill, out / f"eval-{case.name}" / arm)
    outcomes = test.report.outcomes
    summary: dict[str, Any] = {
        arm: _summary([outcome.arm(skill) for outcome in outcomes]) for arm, skill in _ARMS.items()
    }
    summary["delta"] = {name: _delta(*(summary[arm][name]["mean"] for arm in _ARMS)) for name in summary["with_skill"]}
    write_json(out / BENCHMARK, {**about, "run_summary": summary, "skill_test": test.to_json()})


def _write_arm(report: PairedReport, case: TestCase, skill: bool, folder: Path) -> None:
    outcomes = [outcome for outcome in report.outcomes if outcome.task_id in case.tasks]
    arms = [outcome.arm(skill) for outcome in outcomes]
    make_folder(folder / "outputs")
    played = [each for each in report.episodes if each.task_id in case.tasks and bool(each.condition) is skill]
    write_jsonl(folder / "outputs" / "transcripts.jsonl", played)
    known = [arm.seconds for arm in arms if arm.seconds is not None]
    seconds = sum(known) if len(known) == len(arms) else None
    tokens = sum(arm.tokens or 0 for arm in arms)
    timing = {"total_tokens": tokens, "duration_ms": None if seconds is None else round(1000 * seconds)}
    write_json(folder / "timing.json", timing)
    graded = [_graded(case, outcome, arm) for outcome, arm in zip(outcomes, arms, strict=True)]
    passed, total = sum(arm.won for arm in arms), len(arms)
    rates = {"passed": passed, "failed": total - passed, "total": total, "pass_rate": passed / total}
    ungraded = {"not_graded": list(case.assertions)} if case.assertions else {}
    write_json(folder / "grading.json", {"assertion_results": graded, "summary": rates, **ungraded})


def _graded(case: TestCase, outcome: PairedOutcome, arm: ArmOutcome) -> dict[str, Any]:
    attempt = f" (attempt {outcome.attempt + 1})" if outcome.attempt else ""
    return {
        "text": f"{outcome.task_id} is solved{attempt}" + (f": {case.expected}" if case.expected else ""),
        "passed": arm.won,
        "evidence": f"The environment {'says that it is' if arm.won else 'never said so'}: score {arm.score:g}, "
        f"{arm.steps} steps" + (f", cut by {arm.cut}" if arm.cut else ""),
    }


def _summary(arms: Sequence[ArmOutcome]) -> dict[str, dict[str, float | None]]:
    figures = {
        "pass_rate": [float(arm.won) for arm in arms],
        "time_seconds": [arm.seconds for arm in arms if arm.seconds is not None],
        "tokens": [float(arm.tokens) for arm in arms if arm.tokens],
    }
    return {name: _spread(values) for name, values in figures.items()}


def _spread(values: Sequence[float]) -> dict[str, float | None]:
    """Mean and standard deviation over episodes; None of nothing."""
    return {
        "mean": fmean(values) if values else None,
        "stddev": (stdev(values) if len(values) > 1 else 0.0) if values else None,
    }


def _delta(with_: float | None, without: float | None) -> float | None:
    return None if with_ is None or without is None else with_ - without
