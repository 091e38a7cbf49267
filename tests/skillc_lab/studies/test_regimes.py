"""Several studies side by side: which panels there are, in which order methods stand, and that they are drawn."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from skillc_gym.errors import ConfigError
from skillc_lab.studies import (
    UNTRAINED,
    CellResult,
    ComparisonRecord,
    CurvePoint,
    TaskOutcome,
    Usage,
    read_run_file,
    regimes_of,
    write_comparison,
)
from skillc_lab.studies.pictures import TOLD_APART, curve_names
from skillc_lab.studies.record import by_lead

TEXT = (
    "starts: {easy: shipped, hard: shipped-hard}\nmethods: [grpo, ppo, skillc, skill0]\nbudget_tokens: 100\n"
    "steps: 4\nevaluate_every: 2\n"
)
TASKS = 40
WON = {"grpo": 16, "ppo": 16, "skillc": 36, "skill0": 4, UNTRAINED: 2}


def cell(start: str, method: str, seed: int) -> CellResult:
    won = [(i + seed) % TASKS < WON[method] for i in range(TASKS)]
    outcomes = tuple(TaskOutcome(f"t{i:02d}", "kind", i < 30 - seed, w, 1.0, float(w)) for i, w in enumerate(won))
    marks = "".join("01"[w] for w in won)
    curve = (
        CurvePoint(0, 0.0, 1.0, 0, 0, "0" * TASKS, ""),
        CurvePoint(100, sum(won) / TASKS, 1.0, 2, 30, marks, ""),
    )
    return CellResult(start, method, seed, "p", outcomes, curve, Usage(100, 0, 30, 2, 0.1, 1.0))


@pytest.fixture
def record(tmp_path: Path) -> ComparisonRecord:
    """Four methods from the easy start, with one of them in one seed; three from the hard one."""
    (tmp_path / "own.yaml").write_text(TEXT)
    plan = read_run_file(tmp_path / "own.yaml", tmp_path)
    results = [cell(start, UNTRAINED, 0) for start in ("easy", "hard")]
    results += [cell("easy", m, s) for m in ("grpo", "ppo", "skillc") for s in range(3)] + [cell("easy", "skill0", 0)]
    results += [cell("hard", m, s) for m in ("grpo", "skillc", "skill0") for s in range(3)]
    return write_comparison(plan, results)


def test_every_starting_point_is_a_regime(record):
    easy, hard = regimes_of([record])
    assert (easy.name, easy.seeds, hard.seeds) == ("alfworld, easy start", "1 to 3 seeds", "3 seeds")
    assert hard.row("ppo") is None
    verdicts = {row.method: row.against.verdict for row in easy.rows if row.against}
    assert (verdicts["skillc"], verdicts["skill0"]) == ("better", "one seed")
    with pytest.raises(ConfigError, match="no record has a cell"):
        regimes_of([ComparisonRecord("empty", record.protocol, [])])
    other = ComparisonRecord("other", {**record.protocol, "methods": ["ppo"]}, record.results)
    with pytest.raises(ConfigError, match="grpo, ppo"):
        regimes_of([record, other])


def test_methods_stand_in_the_order_of_their_lead_behind_the_baseline(record):
    regimes = regimes_of([record])
    assert by_lead(regimes) == ["grpo", "skillc", "ppo", "skill0"]


def test_few_methods_have_all_their_curves_and_many_the_candidates(record):
    regimes = regimes_of([record])
    assert curve_names(regimes) == ["grpo", "ppo", "skillc", "skill0"]
    more = [replace(regimes[0].rows[1], method=f"skillc:omega={i}") for i in range(4)]
    many = [replace(regimes[0], rows=[*regimes[0].rows, *more])]
    assert curve_names(many) == ["grpo", *(name for name in TOLD_APART if name in ("skillc", "skill0"))]
