"""Training with two processes, and whether they did what one does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch

from skillc_lab.planning import typed_words
from tests.trainers.test_train import weights
from trainers.config import TrainConfig
from trainers.training import RunResult

ROOT = Path(__file__).resolve().parents[2]
LAUNCHER = (sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", "--master_port", "0")


FSDP2 = {
    "ACCELERATE_USE_FSDP": "true",
    "FSDP_VERSION": "2",
    "FSDP_AUTO_WRAP_POLICY": "TRANSFORMER_BASED_WRAP",
    "FSDP_STATE_DICT_TYPE": "FULL_STATE_DICT",
    "FSDP_RESHARD_AFTER_FORWARD": "true",
}


def train_with_two(
    config: TrainConfig,
    folder: Path,
    *,
    sharded: bool = False,
    env: Mapping[str, str] | None = None,
    dies: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Runs ``skillc train`` in two processes, to its end, which may be expected to be a bad one."""
    plain = TrainConfig(model=config.model).to_json()
    words = typed_words({name: value for name, value in config.to_json().items() if value != plain[name]})
    entry, launch = ("tests.trainers.fsdp_on_processor", FSDP2) if sharded else ("skillc_lab", {})
    done = subprocess.run(
        [
            *(*LAUNCHER, "--standalone", "-m", entry, "train", *words),
            *(f"model={config.model}", f"env=tests.trainers.toys:{config.env}"),
        ],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **launch, **(env or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode == 0) is not dies, done.stderr[-4000:]
    return done


def assert_same_run(one: RunResult, folder: Path, *, atol: float = 1e-5) -> None:
    """Holds the policy and the metrics of a run's folder against those of another run, which must have learned."""
    expected, got = weights(one.policy), weights(folder / "policy")
    assert expected.keys() == got.keys()
    assert all(torch.allclose(expected[name], got[name], atol=atol) for name in expected)
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    for mine, theirs in zip(one.metrics, lines, strict=True):
        assert (theirs["step"], theirs["event"]) == (mine["step"], mine["event"])
        if mine["event"] == "train":
            assert mine["grad_norm"] > 0
            assert (theirs["tasks"], theirs["success"]) == (mine["tasks"], mine["success"])
            assert theirs["loss"] == pytest.approx(mine["loss"], abs=1e-5)
            assert theirs["grad_norm"] == pytest.approx(mine["grad_norm"], rel=1e-3)
            assert theirs.get("kl", 0.0) == pytest.approx(mine.get("kl", 0.0), abs=1e-5)
