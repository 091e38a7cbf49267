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


def course(folder: Path, seed: int, method: str = "skillc") -> Path:
    card = {"parameters": 1000, "loss_held_out": [1.5, 0.25], "demonstrator_success": {}, "recipe": {"episodes": 12}}
    write(folder / "start" / "policy_card.json", {**card, "versions": {"git": {**GIT, "revision": "b" * 40}}})
    (folder / "start" / "model.safetensors").write_bytes(b"weights")
    write_run(folder / "run", method, steps=12, seed=seed)
    for part, step, drawn in (("before", 0, 0), ("after", 180, seed)):
        write(folder / part / "report.json", report(step, seed=drawn).to_json())
    for part in ("before", "run", "after"):
        write(folder / part / "versions.json", {"git": GIT})
    return folder


def test_courses_hold_their_start_and_what_a_method_changed_over_seeds(tmp_path: Path):
    folders = [course(tmp_path / str(seed), seed) for seed in (1, 2)]
    record = gathered(tmp_path, "courses", *map(str, folders), str(course(tmp_path / "grpo", 2, "grpo")))
    before, *after = (report(step, seed) for step, seed in ((0, 0), (180, 1), (180, 2)))
    assert list(record["methods"]) == ["skillc", "grpo"]
    found, other = record["methods"].values()
    gains = [each.overall.sr_without - before.overall.sr_without for each in after]
    assert found["change"]["without"]["mean"] == pytest.approx(sum(gains) / 2)
    assert found["change"]["without"]["interval"][0] > 0
    assert found["against_first"]["with"]["mean"] == 0.0
    assert [PairedReport.from_json(run["after"]) for run in found["runs"]] == after
    assert other["against_first"]["without"]["mean"] == 0.0  # seed 2 beside seed 2, where both came to the same
    assert [len(run["updates"]) for run in found["runs"]] == [12, 12]
    assert record["start"]["sha256"] == hashlib.sha256(b"weights").hexdigest()
    assert record["versions"]["git"] == {"revisions": ["a" * 40], "clean": True}


def test_a_course_that_is_not_finished_says_what_is_missing(tmp_path: Path, capsys):
    folder = course(tmp_path, 1)
    (folder / "after" / "report.json").unlink()
    assert main(["courses", str(folder)]) == 2
    assert "after" in capsys.readouterr().err
