"""A whole comparison on the toy: cells, table, resumption, policies that play other tasks; tuning in rounds."""

import json
import shutil
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_library import SkillFileError
from skillc_gym.errors import CheckpointError, ConfigError, MissingDataError, UnknownNameError
from skillc_lab import studies
from skillc_lab.cli.main import main as skillc
from skillc_lab.studies import Cell, CellResult, Changed, ComparisonPlan, CurvePoint, cells, cross, replay_cell, tune
from skillc_lab.studies.cells import write_cell
from skillc_lab.studies.record import write_comparison
from skillc_lab.studies.run_file import RunFile
from skillc_lab.studies.tuning import TunedSetting, best_settings, rank_settings
from tests.skillc_lab.studies_of import cell_of, write_run_file
from tests.trainers.toys import toy_config
from trainers.tracking import run_folder, write_json

pytest.importorskip("trl", reason="needs the train extra")

from skillc_lab.commands import compare as command
from skillc_lab.studies import run as comparison


def plan_of(toy_folder: Path, out: Path, **changes: Any) -> ComparisonPlan:
    config = toy_config(toy_folder, steps=9, temperature=2.0, transcripts_every=0, budget_tokens=100)
    fields: dict[str, Any] = {"methods": ("grpo", "skillc:omega=0.2"), "seeds": (0, 1), "per_type": 2}
    return ComparisonPlan(config, folder=out, held_out="test", **{**fields, **changes})


def done(plan: ComparisonPlan, *places: Cell) -> None:
    """Writes these cells, as if they had been run."""
    for cell in places:
        write_cell(plan, cell, cell_of(cell.place, [True]))


def recorded(folder: Path, title: str = "comparison") -> list[CellResult]:
    return list(studies.read_record(folder / f"{title}.json").results)


def test_a_comparison_is_written_and_gone_on_with(toy_folder, tmp_path, monkeypatch):
    notes: list[str] = []
    plan = plan_of(toy_folder, tmp_path)
    first = comparison.compare(plan, note=notes.append)
    assert [(cell.method, cell.seed) for cell in first] == [(m, s) for s in (0, 1) for m in plan.methods]
    assert [note.split(":")[0] for note in notes] == [job.name for job in plan.jobs]
    assert len({cell.panel_sha256 for cell in first}) == 1
    for cell in first:
        assert cell.usage.tokens_generated >= 100
        assert (cell.usage.updates < 9, cell.usage.prompt_tokens > 0) == (True, True)
        start, *_, end = cell.curve
        assert (start.tokens, start.update, start.env_steps) == (0, 0, 0)
        assert (end.tokens, end.env_steps) == (cell.usage.tokens_generated, cell.usage.env_steps)
        # Two tasks of each of two types were held back; the rates are those of the outcomes.
        assert all(len(point.won_without) == 4 for point in cell.curve)
        assert end.without == end.won_without.count("1") / 4
        assert (cell.started[-1], cell.run_file) == ("Z", {})
    assert {cell.method: cell.acted["withdraws"] for cell in first} == {"grpo": False, "skillc:omega=0.2": True}
    assert {cell.acted["skill_share"] for cell in first if cell.method == "grpo"} == {0.0}
    table = (tmp_path / "table.md").read_text()
    heads = ("skillc:omega=0.2", "skill withdrawn at update", "bank uses")
    assert [head in table for head in heads] == [True, True, False]
    # What a finished run no longer needs is gone; its policy stays.
    assert {path.name for path in (tmp_path / "runs" / "grpo-seed0").iterdir()} >= {"metrics.jsonl", "policy"}
    assert not list(tmp_path.glob("runs/*/checkpoints"))

    monkeypatch.setattr(comparison, "run_cell", lambda plan, cell: pytest.fail(f"{cell.name} was run again"))
    assert comparison.compare(plan) == first
    with pytest.raises(CheckpointError, match="another protocol"):
        comparison.compare(plan_of(toy_folder, tmp_path, per_type=1))


def test_a_record_whose_cells_have_gone_is_kept(toy_folder, tmp_path):
    plan = plan_of(toy_folder, tmp_path)
    studies.write_comparison(plan, [cell_of(cell.place, [True]) for cell in plan.jobs])
    before = (tmp_path / "comparison.json").read_bytes()
    done(plan, plan.jobs[0])  # the start, which all methods share
    with pytest.raises(ConfigError, match=r"would be lost.*--restore"):
        comparison.compare(plan)
    assert (tmp_path / "comparison.json").read_bytes() == before
    done(plan, *plan.jobs)
    with pytest.raises(ConfigError, match=r"is of another comparison \(grpo, skillc:omega=0.2\)"):
        comparison.compare(plan_of(toy_folder, tmp_path, methods=("gigpo", "rloo")))
    assert (tmp_path / "comparison.json").read_bytes() == before
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "table.md").write_text("mine")
    with pytest.raises(ConfigError, match="holds something else"):
        comparison.compare(plan_of(toy_folder, tmp_path / "notes"))


def test_a_damaged_file_is_named_with_the_remedy(toy_folder, tmp_path):
    plan = plan_of(toy_folder, tmp_path)
    begun = tmp_path / "begun" / f"{plan.jobs[1].name}.json"
    write_json(begun, {})
    done(plan, plan.jobs[0])
    for path in (cells.cell_path(plan, plan.jobs[0]), begun):
        kept = path.read_bytes()
        path.write_bytes(b'{"cut')
        with pytest.raises(CheckpointError, match=f"{path.name} is damaged.*delete it"):
            (cells.read_cell(plan, plan.jobs[0]), cells.begun_cells(plan))
        path.write_bytes(kept)


def test_an_interrupted_cell_is_the_last(toy_folder, tmp_path, monkeypatch):
    begun: list[str] = []
    plan, stopped = plan_of(toy_folder, tmp_path), SimpleNamespace(finished=False, stopped=True)
    monkeypatch.setattr(cells, "run", lambda config: begun.append(config.run) or stopped)
    with pytest.raises(KeyboardInterrupt):
        comparison.compare(replace(plan, config=plan.config.with_(max_minutes=60.0)))
    assert len(begun) == 1


def test_cells_of_other_processes_are_recorded_and_not_done_again(toy_folder, tmp_path):
    plan, worked = plan_of(toy_folder, tmp_path, seeds=(0,)), []

    def work(plan: ComparisonPlan, cell: Cell) -> None:
        worked.append(cell)
        done(plan, *plan.jobs)

    meant = [cell for cell in plan.cells if cell.method == "grpo"]
    assert [cell.method for cell in comparison.compare(plan, meant, work=work)] == ["grpo"]
    assert worked == [plan.jobs[0]]
    assert [cell.place for cell in recorded(tmp_path)] == [cell.place for cell in plan.jobs]


def test_a_cell_that_ends_while_the_record_is_written_is_in_it(toy_folder, tmp_path, monkeypatch):
    plan = plan_of(toy_folder, tmp_path, seeds=(0,), methods=("grpo",))

    def write(plan: ComparisonPlan, results: Any) -> Any:
        found = write_comparison(plan, results)
        done(plan, plan.jobs[-1])
        return found

    monkeypatch.setattr(comparison, "write_comparison", write)
    comparison.compare(plan, [], work=lambda plan, cell: None)
    assert [cell.place for cell in recorded(tmp_path)] == [plan.jobs[-1].place]


def test_a_cell_that_another_process_is_at_is_left_to_it(toy_folder, tmp_path):
    plan, worked, notes = plan_of(toy_folder, tmp_path, seeds=(0,)), [], []

    def work(plan: ComparisonPlan, cell: Cell) -> None:
        worked.append(cell)
        if cell == plan.jobs[0]:
            comparison.compare(plan, work=work, note=notes.append)
        done(plan, cell)

    comparison.compare(plan, work=work)
    assert worked == list(plan.jobs)
    assert notes[0] == "untrained: left to another process, which is at it, or its time is up"
    assert len(notes) == len(plan.jobs)


def test_a_starting_point_that_is_not_there_is_said_before_any_cell(toy_folder, tmp_path):
    plan = plan_of(toy_folder, tmp_path, starts={"easy": str(toy_folder), "hard": str(tmp_path / "nowhere")})
    with pytest.raises(MissingDataError, match=r"No checkpoint at model=.*nowhere"):
        comparison.compare(plan)
    assert not list((tmp_path / "cells").iterdir())


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
    # What is overridden for training alone still counts where the shared setting is what the end is played with.
    shown = plan_of(toy_folder, tmp_path, starts=starts, overrides={"grpo": {"skill_grade": "minimal"}})
    minimal = replace(shown, config=shown.config.with_(skill_grade="minimal"))
    assert (shown.digest(own), shown.end_sha256(own) == minimal.end_sha256(own)) == (minimal.digest(own), False)


def test_a_study_is_of_one_clean_revision(toy_folder, tmp_path, monkeypatch):
    """What was begun counts too."""
    plan, begun = plan_of(toy_folder, tmp_path), {"revision": "a" * 40, "changed": False}
    write_json(tmp_path / "runs" / "grpo-seed0" / "versions.json", {"git": begun})
    two = r"2 revisions \(aaaaaaaaaaaa, bbbbbbbbbbbb\)"
    for now, fault in (({}, None), ({"revision": "b" * 40}, two), ({"changed": True}, "with changes")):
        monkeypatch.setattr(comparison, "provenance", partial(dict, git={**begun, **now}))
        with nullcontext() if fault is None else pytest.raises(ConfigError, match=fault):
            comparison.require_one_revision(plan)
    comparison.require_one_revision(plan, allow_changes=True)


def test_a_cell_is_of_the_revisions_that_trained_and_played_it(toy_folder, tmp_path, monkeypatch):
    plan = plan_of(toy_folder, tmp_path, seeds=(0,), methods=("grpo",))
    monkeypatch.setattr(run_folder, "provenance", lambda: {"git": {"revision": "a", "changed": False}})
    monkeypatch.setattr(cells, "provenance", lambda: {"git": {"revision": "b", "changed": False}})
    (cell,) = comparison.compare(plan)
    assert cell.versions["git"] == {"revision": "b", "changed": True, "begun": "a"}


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"methods": ()}, ConfigError, "needs methods"),
        ({"methods": ("grpo", "grpo")}, ConfigError, "each once"),
        ({"seeds": ()}, ConfigError, "needs seeds"),
        ({"methods": ("grpo:omega",)}, ConfigError, "option=value"),
        ({"methods": ("skilc",)}, UnknownNameError, "skillc"),
        ({"methods": ("skillc:omgea=1",)}, UnknownNameError, "omega"),
        ({"methods": ("own",), "overrides": {"own": {"group_size": 3}}}, UnknownNameError, "own"),
        ({"overrides": {"ppo": {"steps": 3}}}, ConfigError, "not compared: ppo"),
        ({"overrides": {"grpo": {"model": "c"}}}, ConfigError, "model, which is the comparison's"),
        *(
            ({"overrides": {"grpo": {name: value}}}, ConfigError, f"{name}, which is the comparison's")
            for name, value in (
                ("eval_greedy", True),
                ("top_p", 0.5),
                ("top_k", 1),
                ("min_p", 0.1),
            )
        ),
        ({"seeds": (-3,)}, ConfigError, "from 0 up"),
        ({"starts": {"a b": "x", "a_b": "y"}}, ConfigError, "one file name"),
    ],
)
def test_a_plan_that_makes_no_table_is_refused(changes, error, message, toy_folder, tmp_path):
    with pytest.raises(error, match=message):
        plan_of(toy_folder, tmp_path, **changes)


def test_a_method_is_a_recipe_with_options_or_has_a_name_of_its_own(toy_folder, tmp_path):
    assert studies.read_method("skillc+baseline:raise_by=0.3,gate=null") == (
        "skillc+baseline",
        {"raise_by": 0.3, "gate": None},
    )
    own = {"small groups": {"preset": "grpo", "group_size": 3, "preset_options": {"group_by": "task"}}}
    plan = plan_of(toy_folder, tmp_path, methods=("skillc", "small groups"), overrides=own)
    config = plan.training(plan.cells[1])
    assert (config.method, config.group_size, config.method_options) == ("grpo", 3, {"group_by": "task"})
    assert plan.evaluation(plan.cells[1], "policy").group_size == plan.config.group_size


def test_a_methods_options_add_up_with_the_shared_ones(toy_folder, tmp_path):
    shared = {"template_options": {"enable_thinking": False}}
    own = {"skillc": {"template_options": {"reasoning": "low"}}}
    plan = plan_of(toy_folder, tmp_path, methods=("grpo", "skillc"), overrides=own)
    plan = replace(plan, config=plan.config.with_(**shared))
    told = {cell.method: plan.training(cell).template_options for cell in plan.cells}
    assert told == {"grpo": {"enable_thinking": False}, "skillc": {"enable_thinking": False, "reasoning": "low"}}
    named = {"skillc": {"template_options": None}}
    with pytest.raises(ConfigError, match="template_options must be values by their names"):
        replace(plan, overrides=named).training(plan.cells[-1])


def test_another_chat_and_another_engine_have_options_of_their_own(toy_folder, tmp_path):
    own = {"skillc": {"chat": "default", "chat_options": {}, "engine": "transformers", "engine_options": {}}}
    plan = plan_of(toy_folder, tmp_path, methods=("grpo", "skillc"), overrides=own)
    shared = {
        "chat": "compact",
        "chat_options": {"role": "agent"},
        "engine": "choosing",
        "engine_options": {"batch": 2},
    }
    plan = replace(plan, config=plan.config.with_(**shared))
    told = {cell.method: plan.training(cell) for cell in plan.cells}
    assert (told["grpo"].chat_options, told["grpo"].engine_options) == ({"role": "agent"}, {"batch": 2})
    assert (told["skillc"].chat_options, told["skillc"].engine_options) == ({}, {})


# Finished policies ----------------------------------------------------------------------------------------------------


def test_a_study_that_is_not_run_yet_has_no_policies_to_play_otherwise(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command, "_at_once", lambda options: 0)
    line = f"study {write_run_file(tmp_path)} --library alfworld:wrong --out {tmp_path / 'empty'}"
    line += " --seeds 0 --methods grpo --allow-changes"
    assert skillc(line.split()) == 1
    told = capsys.readouterr().err
    assert "easy-grpo-seed0: its cell in" in told
    assert "another process" not in told
    monkeypatch.setattr("skillc_lab.studies.run._unless_done", lambda work, plan, cell: None)
    monkeypatch.setattr(command, "cell_path", lambda plan, cell: Path(__file__))
    assert skillc(line.split()) == 1
    assert "easy-grpo-seed0: left to another process, which plays it" in capsys.readouterr().err


def test_finished_policies_play_other_tasks_and_keep_what_training_said(toy_folder: Path, tmp_path, monkeypatch):
    # A seed that numpy's own would not take.
    plan = plan_of(toy_folder, tmp_path, methods=("grpo",), seeds=(2**40, 1))
    comparison.compare(plan, plan.cells[:1])
    first = recorded(tmp_path)
    monkeypatch.setattr("skillc_lab.studies.cells.run", lambda config: pytest.fail(f"{config.run} is trained"))

    def played(split: str) -> list[CellResult]:
        return comparison.compare(Changed(split).plan(plan), work=partial(replay_cell, plan))

    assert [(cell.method, cell.seed) for cell in played("train")] == [("grpo", 2**40)], "the other seed is not trained"
    second = studies.read_record(tmp_path / "train" / "comparison_train.json")
    assert second.protocol["held_out"] == "train"
    assert (tmp_path / "train" / "table.md").is_file()
    for before, after in zip(first, second.results, strict=True):
        assert (after.curve, after.usage) == (before.curve, before.usage)
        assert after.panel_sha256 != before.panel_sha256
        assert {task.task_id for task in after.outcomes}.isdisjoint(task.task_id for task in before.outcomes)
    played("test")
    again = recorded(tmp_path / "test", "comparison_test")
    assert [cell.outcomes for cell in again] == [cell.outcomes for cell in first], "the same split, played again"
    path = tmp_path / "cells" / f"grpo-seed{2**40}.json"
    whole = path.read_bytes()
    values = json.loads(whole)
    write_json(path, {**values, "usage": {**values["usage"], "updates": 99}})
    with pytest.raises(CheckpointError, match="its policy was trained again"):
        played("test")
    path.write_bytes(whole)
    written = tmp_path / "runs" / f"grpo-seed{2**40}" / "config.json"
    write_json(written, {**json.loads(written.read_text()), "learning_rate": 0.5})
    with pytest.raises(CheckpointError, match=r"trained otherwise than its cell \(learning_rate\)"):
        replay_cell(plan, Changed("train").plan(plan), plan.cells[0])
    for gone in (f"runs/grpo-seed{2**40}/policy", "train"):
        shutil.rmtree(tmp_path / gone)
    with pytest.raises(MissingDataError, match=r"There is no policy .*it lies where the cell was trained"):
        played("train")
    (start,) = recorded(tmp_path / "train", "comparison_train")
    assert start.method == "untrained", "what could be played is written"


@pytest.fixture
def own(tmp_path):
    return RunFile(("grpo",), {"easy": "shipped"}, 100, 4, 2).plan("own", tmp_path)


@pytest.mark.parametrize(
    ("changed", "memory"), [({"library": "alfworld:wrong"}, "library"), ({"split": "train"}, "own")]
)
def test_a_changed_library_takes_the_place_of_a_methods_own_memory(own, monkeypatch, changed, memory):
    start, played = own.jobs[0], []
    done(own, start)
    monkeypatch.setattr(cells, "evaluate_policy", lambda *_, memory, **__: pytest.exit(played.append(memory)))
    with pytest.raises(pytest.exit.Exception):
        replay_cell(own, Changed(**changed).plan(own), start)
    assert played == [memory]


def test_a_changed_library_is_shown_to_the_policies_alone(own, tmp_path):
    played = Changed(library="alfworld:wrong").plan(replace(own, preregistered=True))
    cell = own.cells[0]
    assert (played.evaluation(cell, "p").library, own.evaluation(cell, "p").library) == ("alfworld:wrong", None)
    assert (played.held_out, played.folder) == (own.held_out, tmp_path / "alfworld.wrong")
    assert (played.title, played.preregistered) == ("own_alfworld.wrong", False)
    assert Changed("valid_seen", "alfworld:wrong").name == "valid_seen-alfworld.wrong"
    with pytest.raises(UnknownNameError, match="valid_seen"):
        Changed("valid_sen").plan(own)
    with pytest.raises(SkillFileError, match="wrng"):
        Changed(library="alfworld:wrng").plan(own)


def test_a_replay_with_a_library_of_ones_own_lies_in_a_folder_of_its_own_that_is_seen():
    libraries = ("/tmp/lib", "./a/lib", "b/lib", "lib")
    assert [Changed(library=library).name for library in libraries] == ["tmp.lib", "a.lib", "b.lib", "lib"]


@pytest.mark.parametrize("library", [".", "./", "..", ""])
def test_a_replay_never_lies_in_the_studys_folder_or_above_it(own, library):
    with pytest.raises(ConfigError, match="names none"):
        Changed(library=library).place(own.folder, own.title)


def test_how_long_one_waits_makes_no_other_cell(own):
    cell = own.cells[0]
    for patience in ({"max_minutes": 30.0}, {"ddp_timeout": 60}):
        assert replace(own, config=own.config.with_(**patience)).digest(cell) == own.digest(cell)
    assert replace(own, config=own.config.with_(group_size=2)).digest(cell) != own.digest(cell)
    patient = replace(own, config=own.config.with_(max_minutes=30.0))
    write_cell(patient, cell, cell_of(cell.place, [True]))
    path = cells.cell_path(patient, cell)
    path.write_text(path.read_text().replace(own.digest(cell), patient.digest(cell, patience=True)))
    assert cells.read_cell(patient, cell), "which an earlier version wrote"


# Tuning: the same settings for every method, one rule for the best, and halving ---------------------------------------


@pytest.fixture
def tuning(toy_folder, tmp_path):
    overrides = cross(["grpo"], {"learning_rate": [1e-3, 1e-2, 1e-1]})
    config = toy_config(toy_folder, steps=8, transcripts_every=0, budget_tokens=80)
    return ComparisonPlan(config, tuple(overrides), (0,), tmp_path, "test", 1, overrides=overrides, title="tuning")


def tried(label: str, seed: int, won: str, area: float) -> CellResult:
    curve = (CurvePoint(0, area, 0.0), CurvePoint(80, area, 0.0))
    return cell_of(("", label, seed), [mark == "1" for mark in won], curve=curve)


def test_every_method_gets_every_combination():
    found = cross(["skillc", "csca"], {"learning_rate": [1e-3, 1e-2], "method_options.omega": [0.1, 0.2]})
    assert len(found) == 8
    expected = {"method": "skillc", "learning_rate": 0.01, "method_options": {"omega": 0.1}}
    assert found["skillc.learning_rate=0.01.omega=0.1"] == expected
    assert cross(["skillc"], {"method.omega": [0.1]}) == cross(["skillc"], {"method_options.omega": [0.1]})


def test_a_grid_is_read_from_options():
    found = studies.read_grid({"temperature": "1,1.5", "task_sampling": "types", "steps": 4, "seed": [1, 2]})
    assert found == {"temperature": [1, 1.5], "task_sampling": ["types"], "steps": [4], "seed": [1, 2]}
    with pytest.raises(ConfigError, match=r"methods without options.*grid\.method\.clip=0\.1"):
        cross(["grpo:clip=0.1"], found)
    with pytest.raises(ConfigError, match="--methods"):
        cross(["grpo"], {"method": ["skillc"]})
    with pytest.raises(ConfigError, match=r"grid\.temperature"):
        studies.read_grid({"temperature": ","})


def test_settings_are_ranked_by_the_end_and_the_way_there(tuning):
    plan = replace(tuning, seeds=(0, 1))
    low, middle, high = plan.methods
    found = [tried(low, seed, won, 0.2) for seed, won in enumerate(("11", "10"))]
    found += [tried(middle, seed, "11", area) for seed, area in enumerate((0.6, 0.2))]
    ranked = rank_settings(plan, [*found, tried(high, 0, "11", 1.0)])
    # One seed of the highest rate is missing: it is not ranked on the other alone.
    assert [(found.label, found.seeds) for found in ranked] == [(middle, 2), (low, 2)]
    assert ranked[0].score == pytest.approx((1.0 + 0.4) / 2)
    assert ranked[1].score == pytest.approx((0.75 + 0.2) / 2)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 1)), min_size=1), st.floats(0.01, 1))
def test_a_share_of_each_method_goes_on(scores, share):
    ranked = [TunedSetting(f"{m}{n}", m, 1, score, score, 0.0) for n, (m, score) in enumerate(scores)]
    ranked.sort(key=lambda found: (found.method, -found.score))
    kept = best_settings(ranked, share)
    for method in {m for m, _ in scores}:
        labels = [found.label for found in ranked if found.method == method]
        count = sum(label in kept for label in labels)
        assert 1 <= count <= len(labels)
        assert [label for label in labels if label in kept] == labels[:count]


def test_halving_runs_half_as_long_with_all_and_whole_with_the_better_half(tuning, tmp_path):
    notes: list[str] = []
    ranked = tune(tuning, rounds=2, note=notes.append)
    first, second = (json.loads((tmp_path / name / "tuning.json").read_text()) for name in ("round1", "round2"))
    settings = [record["protocol"]["settings"] for record in (first, second)]
    assert [(own["budget_tokens"], own["steps"]) for own in settings] == [(40, 4), (80, 8)]
    assert len(first["protocol"]["methods"]) == 3
    assert sorted(second["protocol"]["methods"]) == sorted(found.label for found in ranked)
    assert len(ranked) == 2
    # A second call finds all runs done.
    again: list[str] = []
    assert tune(tuning, rounds=2, note=again.append) == ranked
    assert len(again) == 2 < len(notes)


def test_the_command_names_the_best_setting_as_options(toy_folder, tmp_path, says, monkeypatch):
    # Another process would not know the toy.
    monkeypatch.setattr(command, "tune", lambda plan, **rest: tune(plan, **{**rest, "workers": 0}))
    config = toy_config(toy_folder, steps=2, transcripts_every=0, budget_tokens=20)
    given = "env model library chat require_think max_reply_tokens max_context group_size steps tasks_per_step "
    given += "panel_per_type budget_tokens"
    words = ["tune chat.role=agent", *(f"{name}={getattr(config, name)}" for name in given.split())]
    options = ["--seeds", 0, "--held-out", "test", "--out", tmp_path / "t"]
    said = says(*words, "grid.learning_rate=0.001,0.01", *options)
    assert "Best of grpo: skillc train method=grpo learning_rate=0.0" in said
    assert len(json.loads((tmp_path / "t" / "tuning.json").read_text())["ranked"]) == 4
    assert "grid.learning_rate" in says(*words, status=2)
    assert "learning_rate" in says(*words, "grid.lerning_rate=1", *options, status=2)
