"""A plan and a record: cells compared task by task, and cells taken over; what the commands refuse and draw."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skillc_gym.errors import ConfigError
from skillc_lab.cli.main import main as skillc
from skillc_lab.studies import (
    UNTRAINED,
    Cell,
    CellResult,
    ComparisonPlan,
    ComparisonRecord,
    check_cell,
    read_record,
    read_run_file,
    require_recorded,
    restore_cells,
    run,
    write_comparison,
)
from skillc_lab.studies.cells import read_cell, write_cell
from tests.skillc_lab.studies_of import TEXT, cell_of, plan_of, write_run_file
from trainers.tracking import run_folder


@pytest.fixture
def plan(tmp_path) -> ComparisonPlan:
    return plan_of(tmp_path)


VERSIONS = {"git": {"revision": "a" * 40, "changed": False}, "machine": "Linux", "packages": {"torch": "2"}}


def result_of(cell: Cell, won: tuple[bool, ...] = (True, False, True, False), **fields: Any) -> CellResult:
    return cell_of(cell.place, won, **{"versions": VERSIONS, **fields})


def lost(cell: Cell) -> CellResult:
    """The same, with one task less at the end."""
    return replace(result_of(cell), outcomes=result_of(cell, (False, False, True, False)).outcomes)


def record_of(plan: ComparisonPlan) -> ComparisonRecord:
    return ComparisonRecord(plan.title, plan.protocol, [result_of(cell) for cell in plan.jobs])


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


def test_what_the_record_lacks_or_ran_otherwise_is_refused_before_anything_runs(plan, tmp_path):
    record = record_of(plan)
    require_recorded(plan, plan.cells, record)
    with pytest.raises(ConfigError, match="no cell easy-ppo-seed1"):
        require_recorded(plan, plan.cells, replace(record, results=record.results[:-1]))
    more = plan_of(tmp_path, TEXT.replace("[grpo, ppo]", "[grpo, rloo, ppo]"))
    require_recorded(more, plan.cells, record)


def test_the_command_says_which_cells_equal_the_record(plan, tmp_path, capsys):
    for cell in plan.jobs:
        write_cell(plan, cell, result_of(cell))
    elsewhere = replace(plan, folder=tmp_path / "record")
    elsewhere.folder.mkdir()
    write_comparison(elsewhere, [lost(cell) if cell.seed else result_of(cell) for cell in plan.jobs])
    words = ["study", str(tmp_path / "own.yaml"), "--out", str(tmp_path), "--allow-changes", "--methods", "ppo"]
    check = ["--check", str(elsewhere.folder / "own.json")]
    assert skillc([*words, *check, "--seeds", "0"]) == 0
    assert "easy-ppo-seed0: equal to the record" in capsys.readouterr().out
    assert skillc([*words, *check]) == 1
    assert "easy-ppo-seed1: differs in 1 of 4 tasks without the skill" in capsys.readouterr().out
    assert skillc([*words, "--check", str(tmp_path / "none.json")]) == 2
    assert skillc([*words, *check, "--draw"]) == 2


def test_finished_cells_come_back_as_they_were(plan, tmp_path):
    there = plan_of(tmp_path / "there", TEXT.replace("[grpo, ppo]", "[grpo, ppo, rloo]"))
    done = [result_of(plan.cells[0]), lost(plan.cells[3])]
    write_comparison(plan, done)
    record = read_record(plan.folder / "own.json")
    assert [cell.name for cell in restore_cells(there, record)] == ["easy-grpo-seed0", "easy-ppo-seed1"]
    assert [found for cell in there.jobs if (found := read_cell(there, cell))] == done
    assert restore_cells(there, record) == []


def test_a_record_of_another_revision_leaves_no_cells(plan, tmp_path, monkeypatch, capsys):
    write_comparison(plan, [result_of(cell) for cell in plan.jobs])
    for module in (run, run_folder):
        monkeypatch.setattr(module, "provenance", lambda: {"git": {"revision": "b" * 40, "changed": False}})
    words = ["study", str(tmp_path / "own.yaml"), "--out", str(tmp_path / "out")]
    assert skillc([*words, "--restore", str(plan.folder / "own.json")]) == 2
    assert "2 revisions" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_settings_that_came_later_count_as_their_defaults(plan, tmp_path):
    there, record = plan_of(tmp_path / "there"), record_of(plan)
    older = {name: value for name, value in record.protocol["settings"].items() if name != "clip_high"}
    assert restore_cells(there, replace(record, protocol={**record.protocol, "settings": older}))
    gone = {**older, "no_more": 1}
    with pytest.raises(ConfigError, match="no_more was 1 and is nothing"):
        restore_cells(there, replace(record, protocol={**record.protocol, "settings": gone}))


def test_shared_options_are_compared_where_the_record_has_them(tmp_path):
    text = TEXT.replace("[grpo, ppo]", "[skillc]")
    record = record_of(plan_of(tmp_path, text))
    changed = plan_of(tmp_path / "there", f"{text}settings: {{method_options: {{tau_retire: 0.5}}}}")
    with pytest.raises(ConfigError, match=r"preset_options was .*0\.05.* and is .*0\.5"):
        restore_cells(changed, record)
    older = {name: value for name, value in record.protocol["settings"].items() if name != "preset_options"}
    assert restore_cells(changed, replace(record, protocol={**record.protocol, "settings": older}))


def test_overrides_under_their_older_names_are_the_same(tmp_path):
    text = TEXT.replace("[grpo, ppo]", "[mine]") + "overrides: {mine: {method: grpo}}\n"
    plan, there = plan_of(tmp_path, text), plan_of(tmp_path / "there", text)
    record = record_of(plan)
    older = {**record.protocol, "overrides": {"mine": {"preset": "grpo"}}}
    assert restore_cells(there, replace(record, protocol=older))


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        (TEXT.replace("tokens: 100", "tokens: 200"), "budget_tokens was 100 and is 200"),
        (f"{TEXT}held_out_per_type: 3", "per_type"),
        (TEXT.replace("shipped", "shipped-hard"), "start was"),
        (f"{TEXT}overrides: {{grpo: {{learning_rate: 0.1}}}}", "overrides was"),
    ],
)
def test_another_protocol_is_refused(plan, tmp_path, changed, named):
    other = plan_of(tmp_path / "there", changed, tmp_path / "there" / "out")
    for refused in (
        lambda: restore_cells(other, record_of(plan)),
        lambda: require_recorded(other, plan.cells, record_of(plan)),
    ):
        with pytest.raises(ConfigError, match=named):
            refused()
    assert not (other.folder / "cells").exists()


# The commands ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def run_file(tmp_path: Path) -> Path:
    return write_run_file(tmp_path)


def test_a_tree_with_changes_is_refused(run_file, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(run_folder, "provenance", lambda: {"git": {"revision": "a" * 40, "changed": True}})
    assert skillc(["study", str(run_file), "--out", str(tmp_path / "out")]) == 2
    assert "the working tree has changes" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_table_and_pictures_are_drawn_from_the_record(run_file, tmp_path, capsys):
    out = tmp_path / "out"
    words = ["study", str(run_file), "--out", str(out), "--draw"]
    assert skillc(words) == 2
    assert "skillc study RUN_FILE makes one" in capsys.readouterr().err
    out.mkdir()
    places = [("easy", UNTRAINED, 0), *(("easy", method, seed) for method in ("grpo", "ppo") for seed in (0, 1))]
    write_comparison(read_run_file(run_file, out), [cell_of(each, [True, each[2] == 0] * 2) for each in places])
    assert skillc(words) == 0
    printed = capsys.readouterr().out
    assert "## easy" in printed
    assert "| ppo | 2 |" in printed
    assert {path.name for path in out.iterdir()} == {"own.json", "table.md", "own.png", "own-curves.png"}


def test_what_the_file_does_not_have_cannot_be_chosen(run_file, tmp_path, capsys):
    words = ["study", str(run_file), "--out", str(tmp_path / "out"), "--allow-changes"]
    for choice in (["--methods", "skillc"], ["--starts", "hard"], ["--seeds", "7"]):
        assert skillc([*words, *choice]) == 2
        assert f"{choice[1]!r}" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_selection_is_a_part_of_the_plan_with_its_starting_points(run_file, tmp_path):
    run_file.write_text(TEXT.replace("easy: shipped", "easy: shipped, hard: shipped-hard"))
    plan = read_run_file(run_file, tmp_path)
    assert plan.with_starts(plan.choose()) == plan.jobs
    names = [job.name for job in plan.with_starts(plan.choose(["ppo"], ["hard"], [1]))]
    assert names == ["hard-untrained", "hard-ppo-seed1"]
    assert {cell.start for cell in plan.choose(seeds=[1])} == {"easy", "hard"}


@pytest.mark.parametrize("broken", [b"\xff\xfe", b"a: [", b"!!python/object/apply:os.system [ls]"])
@pytest.mark.parametrize("suffix", [".yaml", ".toml"])
def test_a_file_that_cannot_be_read_is_named(tmp_path, capsys, broken, suffix):
    path = tmp_path / f"broken{suffix}"
    path.write_bytes(broken)
    assert skillc(["study", str(path), "--allow-changes"]) == 2
    assert path.name in capsys.readouterr().err


@pytest.mark.parametrize("name", ["study", "compare", "tune"])
def test_cells_that_failed_are_no_interruption(name, run_file, tmp_path, monkeypatch):
    words = {
        "study": [str(run_file), "--allow-changes"],
        "compare": ["--model", "shipped", "--budget-tokens", "100"],
        "tune": ["--model", "shipped", "--budget-tokens", "100", "grid.temperature=1,2"],
    }
    monkeypatch.setattr(f"skillc_lab.commands.compare.{'tune' if name == 'tune' else 'compare'}", lambda *_, **__: [])
    assert skillc([name, *words[name], "--out", str(tmp_path / "out")]) == 1
