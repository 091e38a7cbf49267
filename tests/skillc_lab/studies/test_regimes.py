"""Several studies side by side: which panels there are, in which order methods stand, and that they are drawn."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from skillc_gym.errors import ConfigError
from skillc_lab.studies import UNTRAINED, CellResult, ComparisonRecord, regimes_of, write_comparison
from skillc_lab.studies.pictures import TOLD_APART, curve_names
from skillc_lab.studies.record import by_lead
from tests.skillc_lab.studies_of import cell_of, plan_of

TEXT = (
    "starts: {easy: shipped, hard: shipped-hard}\nmethods: [grpo, ppo, skillc, skill0]\nbudget_tokens: 100\n"
    "steps: 4\nevaluate_every: 2\n"
)
WON = {"grpo": 16, "ppo": 16, "skillc": 36, "skill0": 4, UNTRAINED: 2}


def cell(start: str, method: str, seed: int) -> CellResult:
    return cell_of((start, method, seed), [(i + seed) % 40 < WON[method] for i in range(40)])


@pytest.fixture
def record(tmp_path: Path) -> ComparisonRecord:
    """Four methods from the easy start, with one of them in one seed; three from the hard one."""
    results = [cell(start, UNTRAINED, 0) for start in ("easy", "hard")]
    results += [cell("easy", m, s) for m in ("grpo", "ppo", "skillc") for s in range(3)] + [cell("easy", "skill0", 0)]
    results += [cell("hard", m, s) for m in ("grpo", "skillc", "skill0") for s in range(3)]
    return write_comparison(plan_of(tmp_path, TEXT), results)


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


def test_methods_stand_by_their_lead_and_many_have_the_curves_of_the_candidates_alone(record):
    regimes = regimes_of([record])
    assert by_lead(regimes) == ["grpo", "skillc", "ppo", "skill0"]
    assert curve_names(regimes) == ["grpo", "ppo", "skillc", "skill0"]
    more = [replace(regimes[0].rows[1], method=f"skillc:omega={i}") for i in range(4)]
    many = [replace(regimes[0], rows=[*regimes[0].rows, *more])]
    assert curve_names(many) == ["grpo", *(name for name in TOLD_APART if name in ("skillc", "skill0"))]
