"""Trained policies on another split or shown other skills: nothing is trained again, and what is missing is said."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import pytest

from skill_library import SkillFileError
from skillc_gym.errors import MissingDataError, UnknownNameError
from skillc_lab.studies import Changed, cells, read_record, replay_cell
from skillc_lab.studies.cells import write_cell
from skillc_lab.studies.run_file import RunFile
from tests.skillc_lab.studies.test_compare_run import plan_of
from tests.skillc_lab.studies_of import cell_of

pytest.importorskip("trl", reason="needs the train extra")

from skillc_lab.studies import run as comparison


def test_finished_policies_play_other_tasks_and_keep_what_training_said(toy_folder: Path, tmp_path, monkeypatch):
    plan = plan_of(toy_folder, tmp_path, methods=("grpo",), seeds=(0, 1))
    comparison.compare(plan, [cell for cell in plan.cells if cell.seed == 0])
    first = read_record(tmp_path / "comparison.json").results
    monkeypatch.setattr("skillc_lab.studies.cells.run", lambda config: pytest.fail(f"{config.run} is trained"))
    found = comparison.compare(Changed("train").plan(plan), work=partial(replay_cell, plan))
    assert [(cell.method, cell.seed) for cell in found] == [("grpo", 0)], "the other seed is not trained"
    second = read_record(tmp_path / "train" / "comparison_train.json")
    assert second.protocol["held_out"] == "train"
    assert (tmp_path / "train" / "table.md").is_file()
    for before, after in zip(first, second.results, strict=True):
        assert (after.curve, after.usage) == (before.curve, before.usage)
        assert after.panel_sha256 != before.panel_sha256
        assert {task.task_id for task in after.outcomes}.isdisjoint(task.task_id for task in before.outcomes)
    comparison.compare(Changed("test").plan(plan), work=partial(replay_cell, plan))
    again = read_record(tmp_path / "test" / "comparison_test.json").results
    assert [cell.outcomes for cell in again] == [cell.outcomes for cell in first], "the same split, played again"
    for gone in ("runs/grpo-seed0/policy", "train"):
        shutil.rmtree(tmp_path / gone)
    with pytest.raises(MissingDataError, match=r"There is no policy .*it lies where the cell was trained"):
        comparison.compare(Changed("train").plan(plan), work=partial(replay_cell, plan))
    (start,) = read_record(tmp_path / "train" / "comparison_train.json").results
    assert start.method == "untrained", "what could be played is written"


@pytest.mark.parametrize(
    ("changed", "memory"), [({"library": "alfworld:wrong"}, "library"), ({"split": "train"}, "own")]
)
def test_a_changed_library_takes_the_place_of_a_methods_own_memory(tmp_path, monkeypatch, changed, memory):
    plan = RunFile(["grpo"], {"easy": "shipped"}, 100, 4, 2).plan("own", tmp_path)
    start, played = plan.jobs[0], []
    write_cell(plan, start, cell_of(start.place, [True]))
    monkeypatch.setattr(cells, "evaluate_policy", lambda *_, memory, **__: pytest.exit(played.append(memory)))
    with pytest.raises(pytest.exit.Exception):
        replay_cell(plan, Changed(**changed).plan(plan), start)
    assert played == [memory]


def test_a_changed_library_is_shown_to_the_policies_alone(tmp_path):
    plan = RunFile(["grpo"], {"easy": "shipped"}, 100, 4, 2).plan("own", tmp_path)
    changed = Changed(library="alfworld:wrong")
    played = changed.plan(plan)
    cell = plan.cells[0]
    assert (played.evaluation(cell, "p").library, plan.evaluation(cell, "p").library) == ("alfworld:wrong", None)
    assert (played.held_out, played.folder, played.title) == (
        plan.held_out,
        tmp_path / "alfworld.wrong",
        "own_alfworld.wrong",
    )
    assert Changed("valid_seen", "alfworld:wrong").name == "valid_seen-alfworld.wrong"
    assert not Changed()
    with pytest.raises(UnknownNameError, match="valid_seen"):
        Changed("valid_sen").plan(plan)
    with pytest.raises(SkillFileError, match="wrng"):
        Changed(library="alfworld:wrng").plan(plan)
