from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.evaluation_page import main
from trainers.config import TrainConfig
from trainers.evaluation.outcomes import ArmOutcome, PairedOutcome
from trainers.evaluation.paired_report import PairedReport
from trainers.tracking.json_files import read_object
from trainers.tracking.run_folder import provenance, write_json

HEAT = "pick_heat_then_place_in_recep"


def evaluation(folder: Path, *, steps: list[int], changed: bool = False, revision: str = "a" * 40) -> Path:
    """An evaluation in which every task is won with the skill, in so many steps, and none without."""
    lost = ArmOutcome(won=False, score=0.0, steps=50, cut="steps")
    outcomes = tuple(
        PairedOutcome(f"task-{number}", HEAT, ArmOutcome(won=True, score=1.0, steps=taken), lost)
        for number, taken in enumerate(steps)
    )
    folder.mkdir()
    write_json(folder / "report.json", PairedReport(outcomes, 0, {}).to_json())
    config = TrainConfig(model=str(folder), env="alfworld", split="valid_unseen", max_episode_steps=50)
    write_json(folder / "config.json", config.to_json())
    write_json(folder / "versions.json", {**provenance(), "git": {"revision": revision, "changed": changed}})
    (folder / "model.safetensors").write_bytes(b"weights")
    return folder


def test_success_is_told_by_step_limit_and_type(tmp_path: Path) -> None:
    folder = evaluation(tmp_path / "a", steps=[5, 20, 21, 40])
    assert main([str(folder), "--out", str(tmp_path / "found")]) == 0
    page = (tmp_path / "found.md").read_text()
    row = next(line for line in page.splitlines() if line.startswith("| a | valid_unseen | `"))
    assert [cell.split()[0] for cell in row.split("|")[5:11]] == ["50.0", "75.0", "100.0", "0.0", "0.0", "0.0"]
    assert "| a | valid_unseen |  |  |  | 100 / 0 |  |  |" in page
    record = read_object(tmp_path / "found.json")
    assert [outcome["steps_with"] for outcome in record["evaluations"][0]["report"]["outcomes"]] == [5, 20, 21, 40]


def test_what_stands_around_the_tables_stays(tmp_path: Path) -> None:
    folder = evaluation(tmp_path / "a", steps=[5])
    page = tmp_path / "found.md"
    page.write_text("before\n<!-- tables:start -->\nold\n<!-- tables:end -->\nafter\n")
    assert main([str(folder), "--out", str(tmp_path / "found")]) == 0
    assert page.read_text().startswith("before\n")
    assert page.read_text().endswith("after\n")
    assert "old" not in page.read_text()


@pytest.mark.parametrize("other", [{"changed": True}, {"revision": "b" * 40}])
def test_evaluations_of_several_revisions_or_with_changes_are_refused(
    other: dict[str, object], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [evaluation(tmp_path / "a", steps=[5]), evaluation(tmp_path / "b", steps=[5], **other)]
    assert main([*map(str, folders), "--out", str(tmp_path / "found")]) == 2
    assert "revision" in capsys.readouterr().err
    assert main([str(tmp_path), "--out", str(tmp_path / "found")]) == 2
    assert "holds no evaluation" in capsys.readouterr().err
