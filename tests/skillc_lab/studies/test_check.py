"""A cell beside the same one of a record."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from skillc_gym.errors import ConfigError
from skillc_lab.cli.main import main as skillc
from skillc_lab.studies import (
    CellResult,
    ComparisonPlan,
    ComparisonRecord,
    CurvePoint,
    TaskOutcome,
    Usage,
    cell_path,
    check_cell,
    read_run_file,
    require_recorded,
    write_comparison,
)
from tests.skillc_lab.studies_of import TEXT, write_run_file
from trainers.tracking.run_folder import write_json


@pytest.fixture
def run_file(tmp_path: Path) -> Path:
    return write_run_file(tmp_path)


@pytest.fixture
def plan(run_file, tmp_path) -> ComparisonPlan:
    return read_run_file(run_file, tmp_path / "out")


def result_of(cell) -> CellResult:
    outcomes = tuple(TaskOutcome(f"t{i}", "kind", True, i % 2 == 0, 1.0, float(i % 2 == 0)) for i in range(4))
    curve = (CurvePoint(0, 0.0, 1.0, 0, 0, "00", "11"), CurvePoint(100, 0.5, 1.0, 2, 30, "01", "11"))
    versions = {"git": {"revision": "a" * 40, "changed": False}, "machine": "Linux", "packages": {"torch": "2"}}
    return CellResult(cell.start, cell.method, cell.seed, "p", outcomes, curve, Usage(100, 0, 30, 2), {}, versions)


def record_of(plan: ComparisonPlan) -> ComparisonRecord:
    return ComparisonRecord(plan.title, plan.protocol, [result_of(cell) for cell in plan.jobs])


def lose(cell: CellResult, task: int) -> CellResult:
    outcomes = list(cell.outcomes)
    outcomes[task] = replace(outcomes[task], won_without=False, score_without=0.0)
    return replace(cell, outcomes=tuple(outcomes))


def test_an_equal_cell_is_equal_whatever_computed_it(plan):
    own = replace(result_of(plan.cells[0]), versions={"packages": {"torch": "3"}})
    found = check_cell(own, record_of(plan))
    assert found.equal
    assert str(found) == "easy-grpo-seed0: equal to the record in all 4 tasks, with the skill and without"


def test_tasks_that_differ_are_counted_by_condition_and_versions_are_named(plan):
    own = lose(result_of(plan.cells[0]), 2)
    found = check_cell(replace(own, versions={**own.versions, "packages": {"torch": "3"}}), record_of(plan))
    assert (found.equal, found.tasks, found.without, found.with_skill) == (False, 4, 1, 0)
    assert "differs in 1 of 4 tasks without the skill, 0 with (torch was 2 and is 3)" in str(found)
    fewer = replace(own, outcomes=own.outcomes[:2])
    assert (check_cell(fewer, record_of(plan)).without, check_cell(fewer, record_of(plan)).with_skill) == (2, 2)


def test_a_validation_on_the_way_counts_too(plan):
    own = result_of(plan.cells[0])
    parted = replace(own, curve=(own.curve[0], replace(own.curve[1], won_without="10")))
    found = check_cell(parted, record_of(plan))
    assert not found.equal
    assert found.validations == (2,)
    assert "its validations part at update 2" in str(found)


def test_what_the_record_lacks_or_ran_otherwise_is_refused_before_anything_runs(plan, run_file, tmp_path):
    record = record_of(plan)
    require_recorded(plan, plan.cells, record)
    with pytest.raises(ConfigError, match="no cell easy-ppo-seed1"):
        require_recorded(plan, plan.cells, replace(record, results=record.results[:-1]))
    run_file.write_text(TEXT.replace("budget_tokens: 100", "budget_tokens: 200"))
    with pytest.raises(ConfigError, match="budget_tokens was 100 and is 200"):
        require_recorded(read_run_file(run_file, tmp_path), plan.cells, record)
    run_file.write_text(TEXT.replace("[grpo, ppo]", "[grpo, rloo, ppo]"))
    require_recorded(read_run_file(run_file, tmp_path), plan.cells, record)


def test_the_command_says_which_cells_equal_the_record(plan, run_file, tmp_path, capsys):
    for cell in plan.jobs:
        write_json(cell_path(plan, cell), {"protocol": plan.digest(cell), **result_of(cell).to_json()})
    elsewhere = replace(plan, folder=tmp_path / "record")
    elsewhere.folder.mkdir()
    write_comparison(elsewhere, [lose(result_of(cell), 0) if cell.seed else result_of(cell) for cell in plan.jobs])
    words = ["study", str(run_file), "--out", str(plan.folder), "--allow-changes", "--methods", "ppo"]
    check = ["--check", str(elsewhere.folder / "own.json")]
    assert skillc([*words, *check, "--seeds", "0"]) == 0
    assert "easy-ppo-seed0: equal to the record" in capsys.readouterr().out
    assert skillc([*words, *check]) == 1
    assert "easy-ppo-seed1: differs in 1 of 4 tasks without the skill" in capsys.readouterr().out
    assert skillc([*words, "--check", str(tmp_path / "none.json")]) == 2
    assert skillc([*words, *check, "--draw"]) == 2
