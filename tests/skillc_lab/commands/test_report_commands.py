"""``skillc report`` and ``skillc replay`` on runs and evaluations."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from skillc_gym.episodes import write_jsonl
from skillc_lab.cli.main import main as skillc
from tests.skillc_lab.report.synthetic_run import episode

EPISODES = [episode(f"train/{task}", "heat", z, won=bool(z)) for task in "ab" for z in (1, 0)]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run's folder that holds transcripts alone."""
    folder = tmp_path / "run"
    (folder / "transcripts").mkdir(parents=True)
    for step in (10, 20):
        write_jsonl(folder / "transcripts" / f"train-{step:06d}.jsonl", EPISODES)
    return folder


WITHOUT_TORCH = """
import importlib.abc, sys
class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in ("torch", "transformers", "trl", "peft", "accelerate", "datasets", "openai"):
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Absent())
from skillc_lab.cli.main import main
from trainers.tracking.progress import LiveProgress
sys.exit(main(sys.argv[1:]))
"""


def test_a_report_needs_matplotlib_alone(run: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="needs the extra report")
    words = ["report", str(run), "--out", str(tmp_path / "page")]
    done = subprocess.run([sys.executable, "-c", WITHOUT_TORCH, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "page" / "index.html").is_file()


def test_episodes_are_written_as_trajectories(run: Path, tmp_path: Path, capsys: Any) -> None:
    write_jsonl(run / "transcripts.jsonl", EPISODES[:1])
    assert skillc(["replay", str(run), "--step", "10", "--atif", str(tmp_path / "atif")]) == 0
    assert "4 trajectories" in capsys.readouterr().out
    found = [json.loads(file.read_text()) for file in sorted((tmp_path / "atif").glob("*.json"))]
    assert [one["extra"]["condition"] for one in found] == [1, 0, 1, 0]
    assert {one["schema_version"] for one in found} == {"ATIF-v1.7"}
    assert skillc(["replay", str(run / "transcripts.jsonl"), "--step", "10", "--atif", str(tmp_path / "none")]) == 2
    kept = sorted((tmp_path / "atif").iterdir())
    assert skillc(["replay", str(run), "--step", "20", "--atif", str(tmp_path / "atif")]) == 2
    assert "atif exists and is not an empty folder; name a new folder" in capsys.readouterr().err
    assert sorted((tmp_path / "atif").iterdir()) == kept


@pytest.mark.parametrize("command", ["report", "replay"])
def test_a_folder_without_anything_is_refused(command: str, tmp_path: Path, capsys: Any) -> None:
    assert skillc([command, str(tmp_path)]) == 2
    assert f"skillc {command}: error: " in capsys.readouterr().err


@pytest.mark.parametrize("command", ["report", "replay"])
def test_a_link_in_the_reports_place_is_not_followed(command: str, run: Path, tmp_path: Path, capsys: Any) -> None:
    pytest.importorskip("matplotlib", reason="needs the train extra")
    (tmp_path / "precious").mkdir()
    (run / "report").symlink_to(tmp_path / "precious")
    assert skillc([command, str(run)]) == 2
    assert "report is a link, which is not followed" in capsys.readouterr().err
    assert list((tmp_path / "precious").iterdir()) == []
    out = tmp_path / ("page" if command == "report" else "page.html")
    assert skillc([command, str(run), "--out", str(out)]) == 0
    page = Path(capsys.readouterr().out.strip())
    assert "heat some apple" in page.read_text(encoding="utf-8")
