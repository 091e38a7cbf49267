"""The GPU check itself, on the processor with its smallest settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="needs the train extra")

import torch

from skillc_gym.errors import ConfigError
from skillc_lab.cli.main import main as skillc
from skillc_lab.commands.gpu_check import GpuCheckOptions, Scale, as_table, run_gpu_check, training_figures
from trainers.warmstart import PolicySize

SMALL = Scale(
    size=PolicySize(layers=1, width=32, heads=2, feed_forward=32),
    demonstrations=12,
    cloning_batches=2,
    tasks_per_step=2,
    group_size=2,
)


def record(step: int, **changes: Any) -> dict[str, Any]:
    figures = {"tokens_generated": 100, "env_steps": 20, "seconds_generate": 2.0, "seconds_update": 4.0, "loss": 0.1}
    return {"step": step, "event": "train", "tasks": ["a", "b"], "success": step / 10, **figures, **changes}


@pytest.mark.slow
def test_the_check_runs_and_writes_its_figures(tmp_path: Path):
    report = run_gpu_check(GpuCheckOptions(out=tmp_path, steps=2, allow_cpu=True), SMALL)
    assert json.loads((tmp_path / "gpu_check.json").read_text()) == json.loads(json.dumps(report))
    assert report["training"]["updates"] == 2
    assert report["training"]["tasks_per_update"] == 2
    assert report["training"]["loss_finite"]
    assert report["training"]["generated_tokens_per_second"] > 0
    assert report["warm_start"]["parameters"] > 0
    assert report["planned_mib"] > 0
    assert {"packages", "git"} <= set(report["versions"])
    assert (tmp_path / "run" / "policy" / "model.safetensors").exists()
    assert "| device |" in as_table(report)


def test_figures_leave_the_first_update_out_and_tell_of_a_loss_that_is_not_finite():
    figures = training_figures([record(1, seconds_generate=1000.0), record(2), record(3)])
    assert figures["generated_tokens_per_second"] == 50
    assert figures["updated_tokens_per_second"] == 25
    assert figures["env_steps_per_second_of_generation"] == 10
    assert figures["seconds_per_update"] == 6
    assert (figures["success_first"], figures["success_last"]) == (0.1, 0.3)
    for loss, finite in ((0.1, True), (float("nan"), False), (None, False)):
        assert training_figures([record(1), record(2, loss=loss)])["loss_finite"] is finite
    assert training_figures([record(1, engine_kl=1.0), record(2, engine_kl=1e-3)])["engine_kl"] == 1e-3


def test_without_a_gpu_it_says_so(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert skillc(["gpu-check", "--out", str(tmp_path / "run")]) == 2
    assert "--allow-cpu runs it" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_folder_in_use_is_refused_before_the_warm_start(tmp_path: Path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "metrics.jsonl").write_text('{"step": 1}\n')
    with pytest.raises(ConfigError, match="already holds a run"):
        run_gpu_check(GpuCheckOptions(out=tmp_path, steps=2, allow_cpu=True), SMALL)
    assert not (tmp_path / "policy").exists()
