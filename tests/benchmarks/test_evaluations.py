"""Records of evaluations: one clean revision, the outcome of every task."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.evaluations import main
from benchmarks.pages import evaluation_tables
from tests.skillc_lab.report.synthetic_run import report, write_run
from trainers.config import TrainConfig
from trainers.evaluation import ArmOutcome, PairedOutcome, PairedReport

GIT = {"revision": "a" * 40, "changed": False}
HEAT = "pick_heat_then_place_in_recep"


def write(path: Path, values: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(values))


def evaluation(folder: Path, steps: list[int], **git: Any) -> Path:
    """An evaluation in which every task is won with the skill, in so many steps, and none without."""
    lost = ArmOutcome(won=False, score=0.0, steps=50, cut="steps")
    outcomes = tuple(
        PairedOutcome(f"task-{number}", HEAT, ArmOutcome(won=True, score=1.0, steps=taken), lost)
        for number, taken in enumerate(steps)
    )
    config = TrainConfig(model=str(folder), env="alfworld", split="valid_unseen", max_episode_steps=50)
    write(folder / "report.json", PairedReport(outcomes, 0, {}).to_json())
    write(folder / "config.json", config.to_json())
    write(folder / "versions.json", {"git": {**GIT, **git}})
    (folder / "model.safetensors").write_bytes(b"weights")
    return folder


def gathered(tmp_path: Path, *words: str) -> Any:
    out = tmp_path / "found.json"
    assert main([*words, "--out", str(out), "--allow-changes"]) == 0
    return json.loads(out.read_text())


def test_policies_are_told_by_step_limit_and_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    record = gathered(tmp_path, "policies", str(evaluation(tmp_path / "a", [5, 20, 21, 40])))
    (found,) = record["evaluations"]
    assert [outcome["steps_with"] for outcome in found["report"]["outcomes"]] == [5, 20, 21, 40]
    assert len(found["weights_sha256"]) == 64
    monkeypatch.setattr("benchmarks.pages.record", lambda name: record)
    by_limit, by_type = (
        next(line for line in table.splitlines() if line.startswith("| a |")).split("|")
        for table in evaluation_tables("x").split("\n\n")
    )
    assert [cell.split()[0] for cell in by_limit[5:11]] == ["50.0", "75.0", "100.0", "0.0", "0.0", "0.0"]
    assert [cell.strip() for cell in by_type[3:-1]] == ["", "", "", "100 / 0", "", ""]


def test_agents_are_kept_with_their_tries(tmp_path: Path):
    folder = evaluation(tmp_path / "a", [5])
    write(folder / "trials.json", {"trials": 2})
    (found,) = gathered(tmp_path, "agents", str(folder))["evaluations"]
    assert (found["env"], found["trials"], found["agent"]) == ("alfworld", {"trials": 2}, None)


@pytest.mark.parametrize("other", [{"changed": True}, {"revision": "b" * 40}])
def test_evaluations_of_several_revisions_or_with_changes_are_refused(tmp_path: Path, capsys, other: dict[str, Any]):
    folders = [evaluation(tmp_path / "a", [5]), evaluation(tmp_path / "b", [5], **other)]
    assert main(["policies", *map(str, folders)]) == 2
    assert "revision" in capsys.readouterr().err


def test_a_folder_without_an_evaluation_is_said(tmp_path: Path, capsys):
    assert main(["agents", str(tmp_path)]) == 2
    assert "of an evaluation" in capsys.readouterr().err


@pytest.fixture
def course(tmp_path: Path) -> Path:
    folder = tmp_path / "course"
    card = {"parameters": 1000, "loss_held_out": [1.5, 0.25], "demonstrator_success": {}, "recipe": {"episodes": 12}}
    write(folder / "start" / "policy_card.json", {**card, "versions": {"git": {**GIT, "revision": "b" * 40}}})
    (folder / "start" / "model.safetensors").write_bytes(b"weights")
    write_run(folder / "run", steps=12)
    for part, step in (("before", 0), ("after", 180)):
        write(folder / part / "report.json", report(step, seed=1).to_json())
    for part in ("before", "run", "after"):
        write(folder / part / "versions.json", {"git": GIT})
    return folder


def test_a_course_holds_its_start_its_updates_and_the_change_by_task(course: Path, tmp_path: Path):
    record = gathered(tmp_path, "course", str(course))
    before, after = (report(step, seed=1) for step in (0, 180))
    gained = after.to_json()["overall"]["sr_without"] - before.to_json()["overall"]["sr_without"]
    assert record["change"]["without"]["points"] == pytest.approx(100 * gained)
    assert len(record["evaluations"]["after"]["outcomes"]) == len(after.outcomes)
    assert record["start"]["loss_held_out"] == [1.5, 0.25]
    assert record["start"]["sha256"] == hashlib.sha256(b"weights").hexdigest()
    assert record["versions"]["git"] == {"revisions": ["a" * 40], "clean": True}


def test_a_course_that_is_not_finished_says_what_is_missing(course: Path, capsys):
    (course / "after" / "report.json").unlink()
    assert main(["course", str(course)]) == 2
    assert "after" in capsys.readouterr().err
