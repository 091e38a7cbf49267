"""Several processes: what the launcher was asked for, and that two of them train to what one does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("trl", reason="needs the extra 'train'")

from tests.trainers.test_train import weights
from tests.trainers.toys import toy_config
from trainers.launch import asked_processes, launch_warning
from trainers.training import run

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("words", "env", "asked"),
    [
        ("accelerate launch --num_processes 2 --cpu scripts/train.py", {}, 2),
        ("accelerate launch --num-processes=4 scripts/train.py steps=3", {"WORLD_SIZE": "1"}, 4),
        ("torchrun --nproc_per_node 2 --nnodes=3 -m trainers.commands.cli", {}, 6),
        ("torchrun --nproc-per-node=gpu -m trainers.commands.cli", {"WORLD_SIZE": "8"}, 8),
        ("bash", {}, None),
        ("", {"WORLD_SIZE": "x"}, None),
    ],
)
def test_how_many_processes_a_launcher_was_asked_for(words: str, env: dict[str, str], asked: int | None) -> None:
    assert asked_processes(words.split(), env) == asked


def test_a_launcher_that_started_fewer_is_told_of() -> None:
    words = ["accelerate", "launch", "--num_processes", "2", "--cpu", "scripts/train.py"]
    warning = launch_warning(1, words, {})
    assert warning
    assert "asked for 2" in warning
    assert "torchrun --nproc_per_node 2" in warning
    assert launch_warning(2, words, {}) is None
    assert launch_warning(1, [], {}) is None


@pytest.mark.slow
def test_two_processes_train_to_what_one_does(toy_folder: Path, tmp_path: Path) -> None:
    changes: dict[str, Any] = {"steps": 2, "minibatches": 2, "beta": 0.1, "transcripts_every": 0, "validate_every": 2}
    one = run(toy_config(toy_folder, run=str(tmp_path / "one"), **changes))
    two = toy_config(toy_folder, run=str(tmp_path / "two"), **changes)
    words = [f"{n}={json.dumps(v) if isinstance(v, dict) else v}" for n, v in two.to_json().items() if v != () and v]
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", "--master_port", "0"]
    done = subprocess.run(
        [
            *launcher,
            "--standalone",
            "-m",
            "trainers.commands.cli",
            "train",
            *words,
            "env=tests.trainers.toys:" + two.env,
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    # One process speaks for both.
    assert done.stderr.count("step    1/2") == 1
    assert "Warning: The launcher" not in done.stderr
    expected, got = weights(one.policy), weights(tmp_path / "two" / "policy")
    assert all(torch.allclose(expected[name], got[name], atol=1e-5) for name in expected)
    lines = [json.loads(line) for line in (tmp_path / "two" / "metrics.jsonl").read_text().splitlines()]
    for mine, theirs in zip(one.metrics, lines, strict=True):
        assert theirs["step"] == mine["step"]
        if mine["event"] == "train":
            assert (theirs["tasks"], theirs["success"]) == (mine["tasks"], mine["success"])
            assert theirs["loss"] == pytest.approx(mine["loss"], abs=1e-5)
            assert theirs["kl"] == pytest.approx(mine["kl"], abs=1e-5)
