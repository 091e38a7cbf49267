"""``skillc study``: what is refused before anything runs, and drawing from the record alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillc_lab.cli.main import main as skillc
from skillc_lab.studies import UNTRAINED, read_run_file, write_comparison
from tests.skillc_lab.studies_of import TEXT, cell_of, write_run_file
from trainers.tracking import run_folder


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
