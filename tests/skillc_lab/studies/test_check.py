"""A plan and a record: cells compared task by task, and cells taken over."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skillc_gym.errors import CheckpointError, ConfigError
from skillc_lab.cli.main import main as skillc
from skillc_lab.studies import (
    CellResult,
    ComparisonPlan,
    ComparisonRecord,
    CurvePoint,
    TaskOutcome,
    Usage,
    check_cell,
    read_record,
    read_run_file,
    require_recorded,
    restore_cells,
    write_comparison,
)
from skillc_lab.studies.cells import cell_path, read_cell
from skillc_lab.studies.run_file import RunFile
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


def plan_of(folder: Path, **changes: Any) -> ComparisonPlan:
    fields = {"methods": ["grpo", "ppo"], "starts": {"easy": "shipped"}, "seeds": [0, 1]}
    numbers = {"budget_tokens": 100, "steps": 4, "evaluate_every": 2}
    return RunFile(**{**fields, **numbers, **changes}).plan("own", folder)


def test_finished_cells_come_back_as_they_were(tmp_path):
    here, there = plan_of(tmp_path / "here"), plan_of(tmp_path / "there", methods=["grpo", "ppo", "rloo"])
    done = [result_of(here.cells[0]), lose(result_of(here.cells[3]), 0)]
    write_comparison(here, done)
    record = read_record(here.folder / "own.json")
    assert [cell.name for cell in restore_cells(there, record)] == ["easy-grpo-seed0", "easy-ppo-seed1"]
    assert [found for cell in there.jobs if (found := read_cell(there, cell))] == done
    assert restore_cells(there, record) == []


def test_settings_that_came_later_count_as_their_defaults(tmp_path):
    plan, record = plan_of(tmp_path / "there"), record_of(plan_of(tmp_path / "here"))
    older = {name: value for name, value in record.protocol["settings"].items() if name != "clip_high"}
    assert restore_cells(plan, replace(record, protocol={**record.protocol, "settings": older}))
    gone = {**older, "no_more": 1}
    with pytest.raises(CheckpointError, match="no_more was 1 and is nothing"):
        restore_cells(plan, replace(record, protocol={**record.protocol, "settings": gone}))


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"budget_tokens": 200}, "budget_tokens was 100 and is 200"),
        ({"held_out_per_type": 3}, "per_type"),
        ({"starts": {"easy": "shipped-hard"}}, "start was"),
        ({"overrides": {"grpo": {"learning_rate": 1e-5}}}, "overrides was"),
    ],
)
def test_another_protocol_is_refused(tmp_path, changes, named):
    other = plan_of(tmp_path / "there", **changes)
    with pytest.raises(CheckpointError, match=named):
        restore_cells(other, record_of(plan_of(tmp_path / "here")))
    assert not (other.folder / "cells").exists()
