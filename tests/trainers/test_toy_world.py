"""A world in one file is played, cloned, trained in, evaluated and reported by the commands that everybody uses."""

from __future__ import annotations

import json
from pathlib import Path

import gymnasium
import pytest

from skillc_gym.envs import registry
from skillc_lab.cli.main import main as skillc
from tests.trainers.toy_world import spec, write_library

pytest.importorskip("trl", reason="needs the extra 'train'")


@pytest.fixture
def lamps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The world, known for one test; the test works in an empty folder."""
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))
    monkeypatch.chdir(tmp_path)
    registry.register(spec(write_library(tmp_path / "skills")))
    yield
    del gymnasium.registry["skillc-tests/Lamps-v0"]


@pytest.mark.slow
@pytest.mark.usefixtures("lamps")
def test_a_world_in_one_file_is_trained_in_by_the_same_commands():
    chat = "env=lamps chat=compact data=generated max_reply_tokens=12 per_type=3"
    made = "tools make-policy --env lamps --out policy --episodes 96 --batches 10 --batch-episodes 8 --max-length 512"
    assert skillc(made.split()) == 0
    demonstrated = json.loads(Path("policy/policy_card.json").read_text())["demonstrator_success"]
    assert demonstrated["blown"]["without"] == 0.0
    assert demonstrated["blown"]["with"] > 0.9

    assert skillc(f"evaluate {chat} model=policy split=test out=before".split()) == 0
    train = f"train {chat.removesuffix(' per_type=3')} model=policy preset=skillc steps=2 tasks_per_step=2 group_size=4"
    assert skillc(f"{train} panel_per_type=2 validate_every=2 learning_rate=1e-4 beta=0 run=run".split()) == 0
    assert skillc(f"evaluate {chat} model=run/policy split=test out=after".split()) == 0
    assert skillc(["report", "run"]) == 0

    for folder in ("before", "after"):
        report = json.loads(Path(folder, "report.json").read_text())
        assert sorted(pair["task_type"] for pair in report["outcomes"]) == ["blown"] * 3 + ["sound"] * 3
    shown = [json.loads(line) for line in Path("after/transcripts.jsonl").read_text().splitlines()]
    texts = {episode["skill_text"] for episode in shown if episode["condition"] and episode["task_type"] == "blown"}
    assert len(texts) == 1
    assert "Mend the fuse before you press a switch." in texts.pop()
    assert Path("run/report").is_dir()
