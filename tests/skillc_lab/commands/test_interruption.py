"""Ctrl-C on a real process: the folder stays usable and the same command goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("trl", reason="needs the train extra")

from skillc_lab.cli.main import main as skillc

ROOT = Path(__file__).resolve().parents[3]
SETTINGS = (
    "steps=4 tasks_per_step=2 group_size=2 panel_per_type=1 max_episode_steps=3 max_reply_tokens=8 chat=compact "
    "validate_every=2 save_every=50 run=run"
)


def train_command(games: Path) -> list[str]:
    script = str(ROOT / "scripts" / "train.py")
    return [sys.executable, script, "model=shipped", f"data={games}", *SETTINGS.split()]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}


def updates(run: Path) -> list[int]:
    path = run / "metrics.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return [record["step"] for record in map(json.loads, lines) if record["event"] == "train"]


def wait_for(condition: Callable[[], object], process: subprocess.Popen[str], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.slow
def test_an_interrupted_run_goes_on(
    games: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    command, options = train_command(games), {"cwd": tmp_path, "env": environment(), "text": True}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, **options)
    wait_for(lambda: updates(tmp_path / "run"), process)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    done = updates(tmp_path / "run")
    assert process.returncode == 130, said
    assert "Traceback" not in said
    assert "goes on from step" in said
    assert 0 < len(done) < 4
    assert [path.name for path in (tmp_path / "run/checkpoints").iterdir()] == [f"step-{done[-1]:06d}"]
    assert {"config.json", "versions.json", "tasks.json", "metrics.jsonl"} <= {
        path.name for path in (tmp_path / "run").iterdir()
    }
    monkeypatch.chdir(tmp_path)
    assert skillc(["train", *command[2:]]) == 0
    assert f"(step {done[-1]})" in capsys.readouterr().err
    assert updates(tmp_path / "run") == [1, 2, 3, 4]
    assert (tmp_path / "run/policy/model.safetensors").exists()


INSIDE = {
    "train": ("trainers.training.run", ["model=x"]),
    "evaluate": ("trainers.evaluation.evaluate_policy", ["model=x"]),
    "demo": ("skillc_lab.commands.demo.run_demo_versus", []),
    "tools make-policy": ("skillc_lab.commands.make_policy.make_policy", ["--out", "policy"]),
}


@pytest.mark.parametrize("name", INSIDE)
def test_ctrl_c_outside_training_is_no_traceback(name: str, tmp_path: Path, monkeypatch, capsys):
    where, words = INSIDE[name]

    def interrupted(*_args: object, **_options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(where, interrupted)
    assert skillc([*name.split(), *words]) == 130
    assert f"skillc {name}: interrupted" in capsys.readouterr().err
