"""The GPU check itself, on the processor with its smallest settings."""

import json
import re
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

pytest.importorskip("trl", reason="needs the train extra")

import torch

from skillc_gym.errors import ConfigError, SkillCError
from skillc_lab.commands import gpu_check
from skillc_lab.commands.gpu_check import GpuCheckOptions, Scale, run_gpu_check
from skillc_lab.planning import measured
from skillc_lab.planning.measured import trained_apart
from trainers.config import TrainConfig
from trainers.tracking import SilentProgress
from trainers.tracking.policy_settings import save_policy_settings
from trainers.warmstart import PolicySize

SMALL = Scale(
    size=PolicySize(layers=1, width=32, heads=2, feed_forward=32),
    generator={"games_per_type": 3, "size": "small"},
    **{"demonstrations": 12, "cloning_batches": 2, "tasks_per_step": 2, "group_size": 2, "panel_per_type": 1},
)


def record(step: int, **changes: Any) -> dict[str, Any]:
    figures = {"tokens_generated": 100, "env_steps": 20, "seconds_generate": 2.0, "seconds_update": 4.0, "loss": 0.1}
    return {"step": step, "event": "train", "tasks": ["a", "b"], "success": step / 10, **figures, **changes}


@pytest.mark.parametrize(("engine", "says"), [("vlm", "engine 'vlm'"), ("openai", "cannot train"), ("vllm", "vllm")])
def test_an_engine_that_cannot_train_is_refused_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str, says: str
):
    monkeypatch.setattr(gpu_check, "find_spec", lambda name: None)
    monkeypatch.setattr(gpu_check, "_warm_start", None)
    options = GpuCheckOptions(out=tmp_path, engine=engine, allow_cpu=True)
    with pytest.raises(SkillCError, match=says):
        run_gpu_check(options, SMALL, progress=SilentProgress())


@pytest.mark.slow
def test_the_check_runs_and_writes_its_figures(tmp_path: Path):
    report = run_gpu_check(GpuCheckOptions(out=tmp_path, steps=2, allow_cpu=True), SMALL, progress=SilentProgress())
    assert json.loads((tmp_path / "gpu_check.json").read_text()) == json.loads(json.dumps(report))
    training = report["training"]
    assert (training["updates"], training["tasks_per_update"], training["loss_finite"]) == (2, 2, True)
    assert min(training["generated_tokens_per_second"], report["warm_start"]["parameters"], report["planned_mib"]) > 0
    exact, rounded = (report["engines"][f"transformers {kind}"] for kind in ("float32", "bfloat16"))
    assert exact["same_tokens"] == 1
    assert exact["logprob_error"] < 1e-4
    assert rounded["logprob_error"] > exact["logprob_error"]
    assert {"skipped"} <= set(report["engines"]["vllm"]) or report["engines"]["vllm"]["same_tokens"] > 0.9
    assert training["utilisation"] == pytest.approx(training["update_tflops"] / training["matmul_tflops"])
    if not torch.cuda.is_available():
        assert report["fsdp2"] == {"skipped": "no GPU"}
    assert {"packages", "git"} <= set(report["versions"])
    assert (tmp_path / "run" / "policy" / "model.safetensors").exists()
    assert "| device |" in gpu_check.as_table(report)


PROGRAM = """
import json, pathlib, sys
words = dict(word.split("=", 1) for word in sys.argv[sys.argv.index("train") + 1 :])
folder = pathlib.Path(words["run"])
folder.mkdir()
if words["model"] == "broken":
    sys.exit("first line\\nEngineError: CUDA went away\\n=====")
lines = [{"step": 1, "event": "train", "loss": 0.5, "engine_kl": 1e-3, "words": words}] * int(words["steps"])
(folder / "metrics.jsonl").write_text("\\n".join(map(json.dumps, lines)) + "\\n")
"""


def test_a_run_in_another_process_tells_how_it_went(tmp_path: Path):
    program = [sys.executable, "-c", PROGRAM]
    config = TrainConfig(model="m", steps=2, env_options={"generator": {"size": "small"}}, run=str(tmp_path / "a"))
    found = trained_apart(program, replace(config, vllm_sleep=True))
    assert (found["updates"], found["loss_finite"], found["engine_kl"]) == (2, True, 1e-3)
    words = json.loads((tmp_path / "a" / "metrics.jsonl").read_text().splitlines()[0])["words"]
    assert (words["vllm_sleep"], words["env_options"]) == ("true", '{"generator": {"size": "small"}}')
    save_policy_settings(tmp_path, replace(config, micro_batches=16, kl_coef=0.0))
    trained_apart(program, replace(config, model=str(tmp_path), run=str(tmp_path / "own")))
    words = json.loads((tmp_path / "own" / "metrics.jsonl").read_text().splitlines()[0])["words"]
    assert (words["micro_batches"], words["kl_coef"]) == ("4", "0.01"), "what the policy says beside is overruled"
    broken = replace(config, model="broken", run=str(tmp_path / "b"))
    assert trained_apart(program, broken) == {"failed": "EngineError: CUDA went away (all of it: b.log)"}
    assert (tmp_path / "b.log").read_text().startswith("first line")


def test_a_run_that_takes_too_long_is_stopped_with_all_that_it_started(tmp_path: Path):
    child = f"import time, pathlib; time.sleep(4); pathlib.Path({str(tmp_path / 'alive')!r}).touch()"
    slow = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    config = TrainConfig(model="m", run=str(tmp_path / "a"))
    assert trained_apart([sys.executable, "-c", slow], config, patience=2) == {"failed": "took longer than 2 s"}
    time.sleep(3)
    assert not (tmp_path / "alive").exists()


def test_all_gpus_shard_and_deal_the_groups_among_them(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(measured, "trained_apart", apart := Mock(return_value={}))
    assert measured.sharded_training(TrainConfig(model="m", tasks_per_step=4), 3) == {"gpus": 3}
    ((program, run), _) = apart.call_args
    assert program[program.index("--num_processes") + 1] == "3"
    assert Path(program[program.index("--config_file") + 1]).is_file()
    assert run.tasks_per_step == 6


@pytest.mark.parametrize(
    ("spec", "found"), [(None, {"skipped": "vllm is not installed"}), ("vllm", {"engine": "vllm"})]
)
def test_a_vllm_sleeps_where_there_is_one(spec, found, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(measured, "trained_apart", lambda program, config: {"engine": config.engine})
    monkeypatch.setattr("importlib.util.find_spec", lambda name: spec)
    assert measured.sleeping_training(TrainConfig(model="m")) == found


def test_figures_leave_the_first_update_out_and_tell_of_a_loss_that_is_not_finite():
    figures = gpu_check.training_figures([record(1, seconds_generate=1000.0), record(2), record(3)])
    rates = ("generated_tokens_per_second", "updated_tokens_per_second", "env_steps_per_second_of_generation")
    assert [figures[name] for name in (*rates, "seconds_per_update")] == [50, 25, 10, 6]
    assert (figures["success_first"], figures["success_last"]) == (0.1, 0.3)
    for loss, finite in ((0.1, True), (float("nan"), False), (None, False)):
        assert gpu_check.training_figures([record(1), record(2, loss=loss)])["loss_finite"] is finite
    records = [record(step, prompt_tokens=900) for step in (1, 2, 3)]
    assert gpu_check.update_tflops(records, 10**9) == pytest.approx(6 * 2 * 1000 * 1e9 / 8 / 1e12)


def test_without_a_gpu_it_says_so(tmp_path, monkeypatch, says):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert re.search("No CUDA device.*--allow-cpu", says("gpu-check --out", tmp_path / "run", status=2))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("part", ["run", "sleep"])
def test_a_folder_in_use_is_refused_before_the_warm_start(part: str, tmp_path: Path):
    (tmp_path / part).mkdir()
    (tmp_path / part / "metrics.jsonl").write_text('{"step": 1, "event": "train"}\n')
    with pytest.raises(ConfigError, match="holds an earlier check; name another folder by --out"):
        run_gpu_check(GpuCheckOptions(out=tmp_path, steps=2, allow_cpu=True), SMALL, progress=SilentProgress())
    assert not (tmp_path / "policy").exists()
