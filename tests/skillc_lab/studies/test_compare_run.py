"""A whole comparison on the toy: cells, table, resumption, policies that play other tasks, and what is refused."""

from __future__ import annotations

import json
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from skill_library import SkillFileError
from skillc_gym.errors import CheckpointError, ConfigError, MissingDataError, UnknownNameError
from skillc_lab.studies import Cell, Changed, ComparisonPlan, cells, read_method, read_record, replay_cell
from skillc_lab.studies.cells import write_cell
from skillc_lab.studies.run_file import RunFile
from tests.skillc_lab.studies_of import cell_of
from tests.trainers.toys import toy_config

pytest.importorskip("trl", reason="needs the train extra")

from skillc_lab.studies import run as comparison


def plan_of(toy_folder: Path, out: Path, **changes: Any) -> ComparisonPlan:
    config = toy_config(toy_folder, steps=9, temperature=2.0, transcripts_every=0, budget_tokens=100)
    fields: dict[str, Any] = {"methods": ("grpo", "skillc:omega=0.2"), "seeds": (0, 1), "per_type": 2}
    return ComparisonPlan(config, folder=out, held_out="test", **{**fields, **changes})


def test_a_comparison_is_written_and_gone_on_with(toy_folder, tmp_path, monkeypatch):
    notes: list[str] = []
    plan = plan_of(toy_folder, tmp_path)
    first = comparison.compare(plan, note=notes.append)
    assert [(cell.method, cell.seed) for cell in first] == [(m, s) for s in (0, 1) for m in plan.methods]
    assert len(notes) == 5
    assert notes[0].startswith("untrained: ")
    assert all(cell.usage.tokens_generated >= 100 and cell.usage.updates < 9 for cell in first)
    assert len({cell.panel_sha256 for cell in first}) == 1
    for cell in first:
        start, *_, end = cell.curve
        assert (start.tokens, start.update, start.env_steps) == (0, 0, 0)
        assert (end.tokens, end.env_steps) == (cell.usage.tokens_generated, cell.usage.env_steps)
        # Two tasks of each of two types were held back; the rates are those of the outcomes.
        assert all(len(point.won_without) == 4 for point in cell.curve)
        assert end.without == end.won_without.count("1") / 4
    assert all(cell.usage.prompt_tokens > 0 for cell in first)
    assert all(cell.started.endswith("Z") and cell.run_file == {} for cell in first)
    assert {cell.method: cell.acted["withdraws"] for cell in first} == {"grpo": False, "skillc:omega=0.2": True}
    assert {cell.acted["skill_share"] for cell in first if cell.method == "grpo"} == {0.0}

    record = json.loads((tmp_path / "comparison.json").read_text())
    assert [len(panel) for panel in record["panels"].values()] == [4]
    table = (tmp_path / "table.md").read_text()
    assert "skillc:omega=0.2" in table
    assert "skill withdrawn at update" in table
    assert "bank uses" not in table
    assert (tmp_path / "comparison.png").is_file()
    # What a finished run no longer needs is gone; its policy stays.
    assert {path.name for path in (tmp_path / "runs" / "grpo-seed0").iterdir()} >= {"metrics.jsonl", "policy"}
    assert not list(tmp_path.glob("runs/*/checkpoints"))

    monkeypatch.setattr(comparison, "run_cell", lambda plan, cell: pytest.fail(f"{cell.name} was run again"))
    assert comparison.compare(plan) == first
    with pytest.raises(CheckpointError, match="another protocol"):
        comparison.compare(plan_of(toy_folder, tmp_path, per_type=1))


def test_cells_of_other_processes_are_recorded_and_not_done_again(toy_folder, tmp_path):
    plan, worked = plan_of(toy_folder, tmp_path, seeds=(0,)), []

    def work(plan: ComparisonPlan, cell: Cell) -> None:
        worked.append(cell)
        for each in plan.jobs:
            write_cell(plan, each, cell_of(each.place, [True]))

    meant = [cell for cell in plan.cells if cell.method == "grpo"]
    assert [cell.method for cell in comparison.compare(plan, meant, work=work)] == ["grpo"]
    assert worked == [plan.jobs[0]]
    assert [cell.place for cell in read_record(tmp_path / "comparison.json").results] == [c.place for c in plan.jobs]


def test_cells_of_several_starts_run_seed_by_seed(toy_folder, tmp_path):
    starts, own_rate = {"easy": "a", "hard": "b"}, {"grpo": {"learning_rate": 0.5, "preset_options": {}}}
    plan = plan_of(toy_folder, tmp_path, starts=starts, overrides=own_rate)
    assert [(c.seed, c.start) for c in plan.cells] == [(s, x) for s in (0, 1) for x in ("easy", "hard") for _ in "mm"]
    assert [cell.name for cell in plan.jobs[:3]] == ["easy-untrained", "hard-untrained", "easy-grpo-seed0"]
    own, other = plan.cells[:2]
    assert (plan.training(own).learning_rate, plan.training(other).learning_rate) == (0.5, 1e-3)
    assert plan.training(own).model == "a"
    changed = plan_of(toy_folder, tmp_path, starts=starts)
    assert changed.digest(own) != plan.digest(own)
    assert changed.digest(other) == plan.digest(other)


def test_a_study_is_of_one_clean_revision(toy_folder, tmp_path, monkeypatch):
    plan = plan_of(toy_folder, tmp_path)

    def revision(letter: str, *, changed: bool = False) -> None:
        monkeypatch.setattr(comparison, "provenance", lambda: {"git": {"revision": letter * 40, "changed": changed}})

    begun = tmp_path / "runs" / "grpo-seed0"
    begun.mkdir(parents=True)
    (begun / "versions.json").write_text(json.dumps({"git": {"revision": "a" * 40, "changed": False}}))
    revision("a")
    comparison.require_one_revision(plan)
    revision("b")
    with pytest.raises(ConfigError, match=r"2 revisions \(aaaaaaaaaaaa, bbbbbbbbbbbb\)"):
        comparison.require_one_revision(plan)
    revision("a", changed=True)
    with pytest.raises(ConfigError, match="with changes"):
        comparison.require_one_revision(plan)
    comparison.require_one_revision(plan, allow_changes=True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"methods": ()}, "needs methods"),
        ({"methods": ("grpo", "grpo")}, "each once"),
        ({"seeds": ()}, "needs seeds"),
        ({"methods": ("grpo:omega",)}, "option=value"),
        ({"overrides": {"ppo": {"steps": 3}}}, "not compared: ppo"),
        ({"starts": {"a b": "x", "a_b": "y"}}, "one file name"),
    ],
)
def test_a_plan_that_makes_no_table_is_refused(changes, message, toy_folder, tmp_path):
    with pytest.raises(ConfigError, match=message):
        plan_of(toy_folder, tmp_path, **changes)


def test_a_method_is_a_recipe_with_options():
    assert read_method("skillc+baseline:raise_by=0.3,gate=null") == ("skillc+baseline", {"raise_by": 0.3, "gate": None})
    with pytest.raises(UnknownNameError, match="skillc"):
        read_method("skilc")
    with pytest.raises(UnknownNameError, match="omega"):
        read_method("skillc:omgea=1")


def test_a_method_may_have_a_name_of_its_own(toy_folder, tmp_path):
    own = {"preset": "grpo", "group_size": 3, "preset_options": {"group_by": "task"}}
    plan = plan_of(toy_folder, tmp_path, methods=("skillc", "small groups"), overrides={"small groups": own})
    (cell,) = (cell for cell in plan.cells if cell.method == "small groups" and cell.seed == plan.seeds[0])
    config = plan.training(cell)
    assert (config.method, config.group_size, config.method_options) == ("grpo", 3, {"group_by": "task"})
    assert plan.evaluation(cell, "policy").group_size == plan.config.group_size
    with pytest.raises(UnknownNameError, match="small groups"):
        plan_of(toy_folder, tmp_path, methods=("skillc", "small groups"), overrides={"small groups": {"group_size": 3}})


# Finished policies ----------------------------------------------------------------------------------------------------


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
    assert (played.held_out, played.folder) == (plan.held_out, tmp_path / "alfworld.wrong")
    assert played.title == "own_alfworld.wrong"
    assert Changed("valid_seen", "alfworld:wrong").name == "valid_seen-alfworld.wrong"
    assert not Changed()
    with pytest.raises(UnknownNameError, match="valid_seen"):
        Changed("valid_sen").plan(plan)
    with pytest.raises(SkillFileError, match="wrng"):
        Changed(library="alfworld:wrng").plan(plan)
