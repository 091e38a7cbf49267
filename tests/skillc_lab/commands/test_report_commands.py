"""``skillc report`` and ``skillc replay`` on runs and evaluations, and cards of environments and policies."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from skill_library import load_library
from skillc_gym.envs.registry import env_specs
from skillc_gym.episodes import write_jsonl
from skillc_gym.errors import MissingDataError
from skillc_lab.cli.main import main as skillc
from skillc_lab.commands.card import environment_card, policy_card
from tests.skillc_lab.report.synthetic_run import episode
from trainers.base import shipped_policy
from trainers.evaluation import ArmOutcome, PairedOutcome, PairedReport
from trainers.tracking.files import write_json

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


def test_a_step_is_replayed(run: Path, capsys: Any) -> None:
    assert skillc(["replay", str(run), "--step", "10"]) == 0
    page = Path(capsys.readouterr().out.strip())
    assert "train/a" in page.read_text(encoding="utf-8")
    assert skillc(["replay", str(run), "step=11"]) == 2
    assert "skillc replay: error: " in capsys.readouterr().err


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


# Cards: front matter that YAML reads, and what it says of environments and policies -----------------------------------


def parts(card: str) -> tuple[dict[str, Any], str]:
    opening, front, body = card.split("---\n", 2)
    assert opening == ""
    return yaml.safe_load(front), body


@pytest.mark.parametrize("spec", env_specs(), ids=lambda spec: spec.name)
def test_every_environment_has_a_card(spec):
    front, body = parts(environment_card(spec.name))
    assert front["pretty_name"] == spec.id
    assert "reinforcement-learning" in front["tags"]
    assert all(f"`{kind}`" in body for kind in spec.task_types)
    skills = load_library(spec.library).skills if spec.library else ()
    assert all(skill.sha256[:12] in body for skill in skills)


@pytest.fixture
def evaluation(tmp_path: Path) -> Path:
    won = ArmOutcome(won=True, score=1.0, steps=4, well_formed=4, admissible=1)
    lost = ArmOutcome(won=False, score=0.0, steps=9, well_formed=9, admissible=9)
    outcomes = tuple(PairedOutcome(f"valid/{n}", "heat", won, won if n == 0 else lost) for n in range(4))
    PairedReport(outcomes, seed=7, sampling={}, warning="odd commands").save(tmp_path / "after" / "report.json")
    write_json(tmp_path / "after" / "config.json", {"env": "alfworld", "split": "valid_seen", "data": "generated"})
    return tmp_path / "after"


def test_a_policys_card_says_how_it_was_made_and_what_was_found(tmp_path: Path, evaluation: Path):
    policy = tmp_path / "run" / "policy"
    write_json(policy / "config.json", {"model_type": "qwen3"})
    write_json(tmp_path / "run" / "config.json", {"env": "alfworld", "preset": "skillc", "steps": 40, "seed": 3})
    front, body = parts(policy_card(policy, evaluation))
    assert {"alfworld", "skillc"} <= set(front["tags"])
    (result,) = front["model-index"][0]["results"]
    assert result["dataset"] == {"type": "skillc/ALFWorld-v0", "name": "alfworld valid_seen"}
    assert [metric["value"] for metric in result["metrics"]] == [1.0, 0.25, 0.75]
    assert "| steps | `40` |" in body
    assert "4 tasks of `valid_seen`" in body
    assert "**Warning:** odd commands" in body
    assert "| admissible commands, % of turns | 4 | 25.0 |" in body
    assert "| all | 4 | 100 [" in body


def test_a_shipped_policys_card_names_its_weights():
    front, body = parts(policy_card(shipped_policy("webshop")))
    assert front["tags"][-2:] == ["webshop", "behaviour-cloning"]
    assert "weights_sha256" in body


def test_what_is_missing_is_said(tmp_path: Path):
    for broken in (None, "{", "[]", "{}"):
        if broken:
            (tmp_path / "config.json").write_text(broken)
        with pytest.raises(MissingDataError, match="holds no checkpoint"):
            policy_card(tmp_path)
    with pytest.raises(MissingDataError, match="skillc evaluate"):
        policy_card(shipped_policy(), tmp_path)


def test_the_command_writes_and_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert skillc(["tools", "card", "env", "coins"]) == 0
    assert capsys.readouterr().out == environment_card("coins")
    assert skillc(["tools", "card", "env", "coins", "--out", str(tmp_path / "README.md")]) == 0
    assert (tmp_path / "README.md").read_text() == environment_card("coins")
    assert skillc(["tools", "card", "recipe", "grpo"]) == 2
