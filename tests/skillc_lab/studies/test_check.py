"""A plan and a record: cells compared task by task, and cells taken over; what the commands refuse and draw."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import skill_library
from skillc_gym.errors import CheckpointError, ConfigError
from skillc_lab import studies
from skillc_lab.studies import CellResult, ComparisonRecord, check_cell, require_recorded, restore_cells, run
from skillc_lab.studies.cells import cell_path, read_cell, write_cell
from tests.skillc_lab.studies_of import TEXT, cell_of, plan_of, write_run_file
from trainers.base import shipped_policy
from trainers.tracking import read_object, run_folder, write_json

VERSIONS = {"git": {"revision": "a" * 40, "changed": False}, "machine": "Linux", "packages": {"torch": "2"}}


@pytest.fixture
def plan(tmp_path):
    return plan_of(tmp_path)


def result_of(cell, won=(True, False, True, False), **fields: Any) -> CellResult:
    return cell_of(cell.place, won, **{"versions": VERSIONS, **fields})


def lost(cell) -> CellResult:
    """The same, with one task less at the end."""
    return replace(result_of(cell), outcomes=result_of(cell, (False, False, True, False)).outcomes)


def record_of(plan, **protocol: Any) -> ComparisonRecord:
    """A record of all the plan's cells, its protocol changed in these."""
    return ComparisonRecord(plan.title, {**plan.protocol, **protocol}, [result_of(cell) for cell in plan.jobs])


def older(plan, gone: str, **more: object) -> ComparisonRecord:
    """A record from before a setting came, with settings that are no more."""
    settings = {name: value for name, value in plan.protocol["settings"].items() if name != gone}
    return record_of(plan, settings={**settings, **more})


def test_a_cell_is_compared_with_the_record_task_by_task(plan):
    cell, record, newer = plan.cells[0], record_of(plan), {**VERSIONS, "packages": {"torch": "3"}}
    equal = "easy-grpo-seed0: equal to the record in all 4 tasks, with the skill and without"
    assert check_cell(result_of(cell, versions=newer), record) == (True, equal), "whatever computed it"
    parted = check_cell(replace(lost(cell), versions=newer), record)
    assert not parted.equal
    assert "differs in 1 of 4 tasks without the skill, 0 with (torch was 2 and is 3)" in parted.said
    fewer = replace(result_of(cell), outcomes=result_of(cell).outcomes[:2])
    assert "differs in 2 of 4 tasks without the skill, 2 with" in check_cell(fewer, record).said
    start, end = result_of(cell).curve
    on_the_way = check_cell(result_of(cell, curve=(start, replace(end, won_without="0101"))), record)
    assert (on_the_way.equal, "; its validations part at update 2" in on_the_way.said) == (False, True)


def test_what_the_record_lacks_is_refused_before_anything_runs(plan, tmp_path):
    record = record_of(plan)
    require_recorded(plan, plan.cells, record)
    with pytest.raises(ConfigError, match="no cell easy-ppo-seed1"):
        require_recorded(plan, plan.cells, replace(record, results=record.results[:-1]))
    more = plan_of(tmp_path, TEXT.replace("[grpo, ppo]", "[grpo, rloo, ppo]"))
    require_recorded(more, plan.cells, record)


def test_the_command_says_which_cells_equal_the_record(plan, tmp_path, says):
    for cell in plan.jobs:
        write_cell(plan, cell, result_of(cell))
    elsewhere = replace(plan, folder=tmp_path / "record")
    elsewhere.folder.mkdir()
    studies.write_comparison(elsewhere, [lost(cell) if cell.seed else result_of(cell) for cell in plan.jobs])
    words = [f"study {tmp_path}/own.yaml --out {tmp_path} --allow-changes --methods ppo --check"]
    record = elsewhere.folder / "own.json"
    assert "easy-ppo-seed0: equal to the record" in says(*words, record, "--seeds", 0)
    assert "easy-ppo-seed1: differs in 1 of 4 tasks without the skill" in says(*words, record, status=1)
    says(*words, tmp_path / "none.json", status=2)
    start = next(cell for cell in plan.jobs if not cell.trained)
    write_cell(plan, start, lost(start))
    said = says(*words, record, "--seeds", 0, status=1)
    assert "easy-ppo-seed0: equal to the record" in said
    assert f"{start.name}: differs in 1 of 4 tasks without the skill" in said
    drawing = f"study {tmp_path}/own.yaml --out {tmp_path} --draw"
    for more in ("--check", record), ("--seeds", 0):
        assert "draws the whole record" in says(drawing, *more, status=2)


def test_a_starting_point_that_failed_counts_as_failed(plan, tmp_path, says):
    for cell in plan.cells:
        write_cell(plan, cell, result_of(cell))
    (tmp_path / "locks").mkdir()
    (tmp_path / "locks" / "easy-untrained").write_text("in its way")
    assert "| ppo |" in says(f"study {tmp_path}/own.yaml --out {tmp_path} --allow-changes", status=1)


def test_finished_cells_come_back_as_they_were(plan, tmp_path):
    there = plan_of(tmp_path / "there", TEXT.replace("[grpo, ppo]", "[grpo, ppo, rloo]"))
    done = [result_of(plan.cells[0]), lost(plan.cells[3])]
    studies.write_comparison(plan, done)
    record = studies.read_record(plan.folder / "own.json")
    assert [cell.name for cell in restore_cells(there, record)] == ["easy-grpo-seed0", "easy-ppo-seed1"]
    assert [found for cell in there.jobs if (found := read_cell(there, cell))] == done
    assert restore_cells(there, record) == []


def test_cells_are_of_the_texts_and_the_start_that_they_were_played_with(plan, tmp_path):
    """Also those that were restored from a record; of an older one nobody knows."""
    library = shutil.copytree(Path(skill_library.__file__).parent / "alfworld", tmp_path / "mine")
    start = shutil.copytree(shipped_policy(), tmp_path / "start")
    template = tmp_path / "mine.jinja"
    template.write_text("first")
    config = plan.config.with_(library=str(library), chat_template=str(template))
    plan = replace(plan, config=config, starts={"easy": str(start)}, folder=tmp_path / "own")
    cell = plan.cells[0]
    (plan.folder / "cells").mkdir(parents=True)
    write_cell(plan, cell, result := result_of(cell))
    record = studies.write_comparison(plan, [result])
    restored, older = (replace(plan, folder=tmp_path / name) for name in ("restored", "older"))
    restore_cells(restored, record)
    restore_cells(older, replace(record, texts={}))
    absent = replace(plan, starts={"easy": str(tmp_path / "nowhere")})
    assert absent.starts_sha256 == {}, "what is not here is no change"
    text = max(library.rglob("SKILL.md"))
    text.write_text(text.read_text() + "\nMore.\n")
    (start / "model.safetensors").write_bytes(b"others")
    template.write_text("second")
    for each in (plan, restored):
        with pytest.raises(
            CheckpointError, match=r"library has changed.*starting point has changed.*file that its settings name"
        ):
            read_cell(replace(each), cell)
    assert read_cell(replace(older), cell) == result


@pytest.mark.parametrize("option", ["bank", "memory.bank"])
def test_cells_are_of_the_bank_that_their_memory_began_with(plan, tmp_path, option):
    bank = tmp_path / "bank.jsonl"
    bank.write_text("first")
    config = plan.config.with_(method="d2skill", method_options={option: str(bank)})
    plan = replace(plan, config=config, methods=("d2skill",))
    cell = plan.cells[0]
    (plan.folder / "cells").mkdir(parents=True, exist_ok=True)
    write_cell(plan, cell, result_of(cell))
    bank.write_text("second")
    with pytest.raises(CheckpointError, match="its method's bank has changed"):
        read_cell(plan, cell)


def test_cells_are_of_their_wording_and_of_the_encoder_by_which_their_memory_retrieves(plan, tmp_path, monkeypatch):
    encoder = shutil.copytree(shipped_policy(), tmp_path / "encoder")
    config = plan.config.with_(method="d2skill", method_options={"memory.embeddings": str(encoder)})
    plan = replace(plan, config=config, methods=("d2skill",))
    cell = plan.cells[0]
    (plan.folder / "cells").mkdir(parents=True, exist_ok=True)
    write_cell(plan, cell, result_of(cell))
    assert read_cell(plan, cell)
    (encoder / "model.safetensors").write_bytes(b"others")
    monkeypatch.setattr("skillc_lab.studies.plan.chat_sha256", lambda config: "another")
    with pytest.raises(CheckpointError, match=r"wording of chat= has changed.*sentence encoder has changed"):
        read_cell(plan, cell)
    path = cell_path(plan, cell)
    kept = {name: value for name, value in read_object(path).items() if name not in ("chat_sha256", "encoder_sha256")}
    write_json(path, kept)
    assert read_cell(plan, cell), "as an earlier version wrote it"


def test_a_record_of_another_revision_leaves_no_cells(plan, tmp_path, monkeypatch, says):
    studies.write_comparison(plan, [result_of(cell) for cell in plan.jobs])
    for module in (run, run_folder):
        monkeypatch.setattr(module, "provenance", lambda: {"git": {"revision": "b" * 40, "changed": False}})
    words = [tmp_path / "own.yaml", "--out", tmp_path / "out", "--restore", plan.folder / "own.json"]
    assert "2 revisions" in says("study", *words, status=2)
    assert "cells without policies" in says("study", *words, "--held-out", "valid_seen", status=2)
    assert not (tmp_path / "out").exists()


def test_settings_that_came_later_count_as_their_defaults(plan, tmp_path):
    there = plan_of(tmp_path / "there")
    assert restore_cells(there, older(plan, "clip_high"))
    patient = plan_of(tmp_path / "patient", f"{TEXT}settings: {{max_minutes: 5}}")
    assert restore_cells(patient, record_of(plan)), "nor does how long one waits"
    with pytest.raises(ConfigError, match="no_more was 1 and is nothing"):
        restore_cells(there, older(plan, "clip_high", no_more=1))


def test_shared_options_are_compared_where_the_record_has_them_and_overrides_under_any_name(tmp_path):
    text = TEXT.replace("[grpo, ppo]", "[skillc, mine]") + "overrides: {mine: {method: skillc}}\n"
    plan = plan_of(tmp_path, text)
    changed = plan_of(tmp_path / "there", f"{text}settings: {{method_options: {{tau_retire: 0.5}}}}")
    with pytest.raises(ConfigError, match=r"preset_options was .*0\.05.* and is .*0\.5"):
        restore_cells(changed, record_of(plan))
    assert restore_cells(changed, older(plan, "preset_options"))
    by_older_names = record_of(plan, overrides={"mine": {"preset": "skillc"}})
    assert restore_cells(plan_of(tmp_path / "same", text), by_older_names)


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        (TEXT.replace("tokens: 100", "tokens: 200"), "budget_tokens was 100 and is 200"),
        (f"{TEXT}held_out_per_type: 3", "per_type"),
        (f"{TEXT}settings: {{seed: 7}}", "evaluation_seed was 0 and is 7"),
        (TEXT.replace("shipped", "shipped-hard"), "start was"),
        (f"{TEXT}overrides: {{grpo: {{learning_rate: 0.1}}}}", "overrides was"),
    ],
)
def test_another_protocol_is_refused(plan, tmp_path, changed, named):
    other = plan_of(tmp_path / "there", changed, tmp_path / "there" / "out")
    with pytest.raises(ConfigError, match=named):
        restore_cells(other, record_of(plan))
    with pytest.raises(ConfigError, match=named):
        require_recorded(other, plan.cells, record_of(plan))
    assert not (other.folder / "cells").exists()


# The commands ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def words(tmp_path):
    return [write_run_file(tmp_path), "--out", tmp_path / "out"]


def test_a_tree_with_changes_is_refused(words, monkeypatch, says):
    monkeypatch.setattr(run_folder, "provenance", lambda: {"git": {"revision": "a" * 40, "changed": True}})
    assert "the working tree has changes" in says("study", *words, status=2)
    assert not words[-1].exists()


def test_table_and_pictures_are_drawn_from_the_record_alone(words, says):
    assert "skillc study RUN_FILE makes one" in says("study --draw", *words, status=2)
    out = words[-1]
    plan = plan_of(out.parent, TEXT.replace("easy: shipped", "easy: x, hard: y"), out)
    out.mkdir()
    record = studies.write_comparison(plan, [cell_of(job.place, [True, job.seed == 0] * 2) for job in plan.jobs])
    assert list(studies.read_record(out / "own.json").results) == list(record.results)
    printed = says("study --draw", *words)
    assert "## easy" in printed
    assert "| ppo | 2 |" in printed
    assert {path.name for path in out.iterdir()} == {"own.json", "table.md", "own.png", "own-curves.png"}
    (out / "own.json").write_text("[]")
    assert "no record" in says("study --draw", *words, status=2)


@pytest.mark.parametrize("choice", ["--methods skillc", "--starts hard", "--seeds 7"])
def test_what_the_file_does_not_have_cannot_be_chosen(words, says, choice):
    assert f"{choice.split()[1]!r}" in says("study --allow-changes", *words, *choice.split(), status=2)
    assert not words[-1].exists()


def test_a_selection_is_a_part_of_the_plan_with_its_starting_points(tmp_path):
    plan = plan_of(tmp_path, TEXT.replace("easy: shipped", "easy: shipped, hard: shipped-hard"))
    assert plan.with_starts(plan.choose()) == plan.jobs
    names = [job.name for job in plan.with_starts(plan.choose(["ppo"], ["hard"], [1]))]
    assert names == ["hard-untrained", "hard-ppo-seed1"]
    assert {cell.start for cell in plan.choose(seeds=[1])} == {"easy", "hard"}


@pytest.mark.parametrize("broken", [b"\xff\xfe", b"a: [", b"!!python/object/apply:os.system [ls]"])
@pytest.mark.parametrize("suffix", [".yaml", ".toml"])
def test_a_file_that_cannot_be_read_is_named(tmp_path, says, broken, suffix):
    path = tmp_path / f"broken{suffix}"
    path.write_bytes(broken)
    assert f"{path.name} cannot be read" in says("study --allow-changes", path, status=2)


@pytest.mark.parametrize(
    ("line", "done_by"),
    [
        ("study {} --allow-changes", "compare"),
        ("compare --model shipped --budget-tokens 100", "compare"),
        ("tune --model shipped --budget-tokens 100 grid.temperature=1,2", "tune"),
    ],
)
def test_cells_that_failed_are_no_interruption(line, done_by, words, monkeypatch, says):
    monkeypatch.setattr(f"skillc_lab.commands.compare.{done_by}", lambda *_, **__: [])
    says(line.format(words[0]), *words[1:], status=1)
