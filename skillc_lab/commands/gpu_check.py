"""``skillc gpu-check``: check and measure training on this machine's GPU."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from skillc_gym.envs.registry import warm_started
from skillc_gym.errors import ConfigError
from skillc_lab.cli.command import Command, say
from skillc_lab.planning import Machine, make_plan
from skillc_lab.tables import Table
from trainers.config import TrainConfig
from trainers.tracking import Progress, RunFolder, SilentProgress, make_progress, provenance, write_json
from trainers.warmstart import SMALL, TINY, CloningConfig, PolicySize, make_policy, shipped_recipe


@dataclass(frozen=True)
class GpuCheckOptions:
    """Check and measure training on this machine's GPU: make a policy, train it with SkillC, write figures.

    Speed, peak memory beside what skillc plan says of it, and with --engine vllm how far its log-probabilities lie from
    the trainer's (engine_kl).
    """

    out: Path = Path("runs/gpu_check")
    """Folder for policy, run and figures."""
    steps: int = 10
    """SkillC updates."""
    engine: str = "transformers"
    """Who generates: transformers, vllm, or an engine of your own as module:NAME."""
    tiny: bool = False
    """Take 0.9 instead of some 28 million parameters, and little cloning."""
    allow_cpu: bool = False
    """Run without a GPU too, to try the check itself."""


@dataclass(frozen=True)
class Scale:
    """How large the check is; the defaults take a few minutes on a current GPU."""

    size: PolicySize = SMALL
    demonstrations: int = 2400
    cloning_batches: int = 200
    tasks_per_step: int = 16
    group_size: int = 8


def check(options: GpuCheckOptions) -> int:
    """Runs the command."""
    scale = Scale(TINY, 240, 20, tasks_per_step=4, group_size=4) if options.tiny else Scale()
    table = as_table(run_gpu_check(options, scale, progress=make_progress()))
    (options.out / "gpu_check.md").write_text(table + "\n", encoding="utf-8")
    say(table)
    return 0


def run_gpu_check(options: GpuCheckOptions, scale: Scale, *, progress: Progress | None = None) -> dict[str, Any]:
    """Runs the check and writes ``gpu_check.json``.

    Returns:
        Device, versions, and per phase: seconds, tokens per second of generation and of the update, peak memory in MiB,
        and the success rates of the first and the last update.
    """
    import torch

    gpu = torch.cuda.is_available()
    if not (gpu or options.allow_cpu):
        raise ConfigError(
            "No CUDA device. On the processor alone the check says nothing of speed; --allow-cpu runs it."
        )
    from trainers.training import run

    config, started = _training(options, scale), time.perf_counter()
    RunFolder(options.out / "run").to_resume(config)
    warm_start = _warm_start(options.out / "policy", scale)
    if gpu:
        torch.cuda.reset_peak_memory_stats()
    metrics = run(config, progress=progress or SilentProgress()).metrics
    records = [record for record in metrics if record["event"] == "train"]
    peak = torch.cuda.max_memory_allocated() / 2**20 if gpu else 0.0
    report = {
        "device": torch.cuda.get_device_name() if gpu else "cpu",
        "precision": "bfloat16 autocast over float32 weights" if gpu else "float32",
        "engine": options.engine,
        "versions": provenance(),
        "warm_start": warm_start,
        "planned_mib": make_plan(config, Machine()).update / 2**20,
        "training": {**training_figures(records), "peak_memory_mib": peak},
        "seconds": time.perf_counter() - started,
    }
    write_json(options.out / "gpu_check.json", report)
    return report


def _warm_start(folder: Path, scale: Scale) -> dict[str, Any]:
    import torch

    began = time.perf_counter()
    cloning = CloningConfig(batches=scale.cloning_batches, learning_rate=1e-3)
    recipe = replace(shipped_recipe(), episodes=scale.demonstrations, cloning=cloning, size=scale.size)
    card = make_policy(recipe, folder, device="cuda" if torch.cuda.is_available() else "cpu")
    figures = {name: card[name] for name in ("parameters", "loss_last")}
    return {**figures, "seconds": time.perf_counter() - began}


def _training(options: GpuCheckOptions, scale: Scale) -> TrainConfig:
    return TrainConfig(
        model=str(options.out / "policy"),
        method="skillc",
        data="generated",
        env_options={"generator": dict(warm_started("alfworld")[1].generator)},
        max_episode_steps=20,
        chat="compact",
        steps=options.steps,
        task_sampling="types",
        tasks_per_step=scale.tasks_per_step,
        group_size=scale.group_size,
        max_parallel=scale.tasks_per_step * scale.group_size,
        max_reply_tokens=20,
        max_context=2048,
        learning_rate=5e-5,
        kl_coef=0.01,
        validate_every=max(1, options.steps // 2),
        panel_per_type=8,
        engine=options.engine,
        run=str(options.out / "run"),
        resume="never",
    )


# Figures -------------------------------------------------------------------------------------------------------------


def training_figures(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Sums up metrics of updates; the first one, which warms up kernels and memory, is left out of the rates."""
    timed = records[1:] or records

    def total(key: str) -> float:
        return sum(float(record[key]) for record in timed)

    losses = [record["loss"] for record in records]
    return {
        "updates": len(records),
        "tasks_per_update": len(records[0]["tasks"]),
        "generated_tokens_per_second": total("tokens_generated") / total("seconds_generate"),
        "updated_tokens_per_second": total("tokens_generated") / total("seconds_update"),
        "env_steps_per_second_of_generation": total("env_steps") / total("seconds_generate"),
        "seconds_per_update": (total("seconds_generate") + total("seconds_update")) / len(timed),
        "success_first": records[0]["success"],
        "success_last": records[-1]["success"],
        # What was not finite is null in the metrics.
        "loss_finite": all(loss is not None and math.isfinite(loss) for loss in losses),
        **{name: records[-1][name] for name in ("engine_kl",) if name in records[-1]},
    }


def as_table(report: Mapping[str, Any]) -> str:
    """The figures as a Markdown table."""
    plain = {name: value for name, value in report.items() if not isinstance(value, Mapping)}
    cloned = {f"cloning: {name}": value for name, value in report["warm_start"].items()}
    rows = [
        (name.replace("_", " "), f"{value:,.4g}" if isinstance(value, float) else str(value))
        for name, value in {**plain, **cloned, **report["training"]}.items()
    ]
    return Table(["what", "figure"], rows).markdown()


COMMAND = Command(GpuCheckOptions, check)
