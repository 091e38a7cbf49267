"""``skillc gpu-check``: check and measure training on this machine's GPU."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from skillc_gym.envs.registry import warm_started
from skillc_gym.errors import ConfigError
from skillc_lab.cli.command import Command, say
from skillc_lab.planning import Machine, make_plan
from trainers.config import TrainConfig
from trainers.tracking.progress import Progress, SilentProgress, make_progress
from trainers.tracking.run_folder import RunFolder, provenance, write_json
from trainers.warmstart import SMALL, TINY, CloningConfig, DemonstrationConfig, PolicyRecipe, PolicySize, make_policy

__all__ = ["COMMAND", "GpuCheckConfig", "GpuCheckOptions", "as_table", "run_gpu_check"]


@dataclass(frozen=True)
class GpuCheckConfig:
    """Settings of the check; the defaults take a few minutes on a current GPU."""

    out: Path
    """Folder for the policy, the run and ``gpu_check.json``."""
    size: PolicySize = SMALL
    """Shape of the policy."""
    generator: Mapping[str, Any] = field(default_factory=lambda: dict(warm_started("alfworld")[1].generator))
    """The family of generated tasks."""
    demonstrations: int = 2400
    """Episodes to clone from."""
    cloning_batches: int = 200
    """Optimiser steps of the warm start."""
    steps: int = 10
    """SkillC updates."""
    tasks_per_step: int = 16
    """Groups per update."""
    group_size: int = 8
    """Rollouts per group."""
    engine: str = "transformers"
    """Who generates: transformers or vllm."""
    allow_cpu: bool = False
    """Run without a GPU as well, to see that the check itself works."""
    seed: int = 0
    """Seed of everything."""


def run_gpu_check(config: GpuCheckConfig, *, progress: Progress | None = None) -> dict[str, Any]:
    """Runs the check and writes ``gpu_check.json``.

    Returns:
        Device, versions, and per phase: seconds, tokens per second of generation and of the update, peak memory in MiB,
        and the success rates of the first and the last update; how two updates went under FSDP2 on all GPUs, and with a
        vLLM that sleeps meanwhile.

    Raises:
        ConfigError: If there is no CUDA device and the processor alone was not allowed, or if the folder holds the run
            of an earlier check.
    """
    import torch

    if not (torch.cuda.is_available() or config.allow_cpu):
        raise ConfigError(
            "No CUDA device. On the processor alone the check says nothing of speed; --allow-cpu runs it."
        )
    from skillc_lab.commands.engine_check import engine_agreement
    from skillc_lab.commands.gpu_paths import matmul_tflops, sharded_training, sleeping_training
    from trainers.training import run

    RunFolder(config.out / "run").to_resume(_training(config))
    started = time.perf_counter()
    warm_start = _warm_start(config)
    engines = engine_agreement(config.out / "policy")
    _reset_peak()
    result = run(_training(config), progress=progress or SilentProgress())
    records = [record for record in result.metrics if record["event"] == "train"]
    peak, reached = _peak_mib(), update_tflops(records, warm_start["parameters"])
    possible = matmul_tflops()
    if torch.cuda.is_available():
        # What follows runs in other processes on the same GPUs.
        torch.cuda.empty_cache()
    report = {
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
        "precision": "bfloat16 autocast over float32 weights" if torch.cuda.is_available() else "float32",
        "engine": config.engine,
        "versions": provenance(),
        "warm_start": warm_start,
        "engines": engines,
        "planned_mib": _planned_mib(_training(config)),
        "training": {
            **training_figures(records),
            "update_tflops": reached,
            "matmul_tflops": possible,
            "utilisation": reached / possible,
            "peak_memory_mib": peak,
        },
        "fsdp2": sharded_training(_short(config, "fsdp2"), torch.cuda.device_count()),
        "sleep": sleeping_training(_short(config, "sleep")),
        "seconds": time.perf_counter() - started,
    }
    write_json(config.out / "gpu_check.json", report)
    return report


def _warm_start(config: GpuCheckConfig) -> dict[str, Any]:
    import torch

    _reset_peak()
    began = time.perf_counter()
    card = make_policy(
        PolicyRecipe(
            demonstrations=DemonstrationConfig(
                env_kwargs={"data": "generated", "split": "train", "generator": config.generator}
            ),
            episodes=config.demonstrations,
            cloning=CloningConfig(batches=config.cloning_batches, learning_rate=1e-3, seed=config.seed),
            size=config.size,
            seed=config.seed,
        ),
        config.out / "policy",
        device="cuda" if torch.cuda.is_available() else "cpu",
    )
    return {
        "parameters": card["parameters"],
        "loss_last": card["loss_last"],
        "seconds": time.perf_counter() - began,
        "peak_memory_mib": _peak_mib(),
    }


def _training(config: GpuCheckConfig) -> TrainConfig:
    return TrainConfig(
        model=str(config.out / "policy"),
        method="skillc",
        data="generated",
        env_options={"generator": config.generator},
        max_episode_steps=20,
        chat="compact",
        steps=config.steps,
        seed=config.seed,
        task_sampling="types",
        tasks_per_step=config.tasks_per_step,
        group_size=config.group_size,
        max_parallel=config.tasks_per_step * config.group_size,
        max_reply_tokens=20,
        max_context=2048,
        learning_rate=5e-5,
        kl_coef=0.01,
        validate_every=max(1, config.steps // 2),
        panel_per_type=8,
        engine=config.engine,
        run=str(config.out / "run"),
        resume="never",
    )


def _short(config: GpuCheckConfig, name: str) -> TrainConfig:
    """Two updates of the same training in another folder."""
    return replace(_training(config), steps=2, validate_every=2, panel_per_type=1, run=str(config.out / name))


def _planned_mib(config: TrainConfig) -> float:
    """What the planner says of the update, for rows of the longest length."""
    return make_plan(config, Machine()).update / 2**20


def training_figures(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Sums up an update's metrics; the first update, which warms up kernels and memory, is left out of the rates.

    Args:
        records: The lines of ``metrics.jsonl`` with the event "train".
    """
    timed = records[1:] or records

    def total(key: str) -> float:
        return sum(float(record[key]) for record in timed)

    return {
        "updates": len(records),
        "tasks_per_update": len(records[0]["tasks"]),
        "generated_tokens_per_second": total("tokens_generated") / total("seconds_generate"),
        "updated_tokens_per_second": total("tokens_generated") / total("seconds_update"),
        "env_steps_per_second_of_generation": total("env_steps") / total("seconds_generate"),
        "seconds_per_update": (total("seconds_generate") + total("seconds_update")) / len(timed),
        "success_first": records[0]["success"],
        "success_last": records[-1]["success"],
        "loss_finite": all(_finite(record["loss"]) for record in records),
    }


def update_tflops(records: Sequence[Mapping[str, Any]], parameters: int) -> float:
    """The model's floating-point operations per second of updating, in 10^12: 6 per parameter and token of a row.

    Args:
        records: As for :func:`training_figures`.
        parameters: Of the policy; passes of the reference are not counted.
    """
    timed = records[1:] or records
    tokens = sum(record["prompt_tokens"] + record["tokens_generated"] for record in timed)
    return float(6 * parameters * tokens / sum(record["seconds_update"] for record in timed) / 1e12)


def _finite(figure: float | None) -> bool:
    """Whether a figure of the metrics is a number; what was not finite is null there."""
    return figure is not None and math.isfinite(figure)


def as_table(report: Mapping[str, Any]) -> str:
    """The report as a Markdown table."""
    training, warm, engines = report["training"], report["warm_start"], report["engines"]
    rows = [
        ("device", report["device"]),
        ("precision", report["precision"]),
        ("policy", f"{warm['parameters'] / 1e6:.1f} M parameters"),
        ("engine", report["engine"]),
        ("generated tokens/s (with environments)", f"{training['generated_tokens_per_second']:,.0f}"),
        ("updated own tokens/s", f"{training['updated_tokens_per_second']:,.0f}"),
        ("model TFLOP/s of updating", f"{training['update_tflops']:.4g}"),
        ("of what a matrix product reaches", f"{training['utilisation']:.1%} of {training['matmul_tflops']:.4g}"),
        ("seconds per update", f"{training['seconds_per_update']:.2f}"),
        ("peak memory, training", f"{training['peak_memory_mib']:,.0f} MiB"),
        ("planned for rows of full length", f"{report['planned_mib']:,.0f} MiB"),
        *((f"{engine}: greedy tokens, log-probabilities", _agreement(found)) for engine, found in engines.items()),
        ("two updates under FSDP2", _went(report["fsdp2"])),
        ("two updates with a vLLM that sleeps", _went(report["sleep"])),
        ("success, first and last update", f"{training['success_first']:.2f}, {training['success_last']:.2f}"),
        ("seconds in all", f"{report['seconds']:.0f}"),
    ]
    return "\n".join(["| what | figure |", "|---|---|", *(f"| {name} | {figure} |" for name, figure in rows)])


def _agreement(found: Mapping[str, Any]) -> str:
    if "skipped" in found:
        return f"skipped: {found['skipped']}"
    return f"{found['same_tokens']:.1%} the same, off by {found['logprob_error']:.1e} at most"


def _went(found: Mapping[str, Any]) -> str:
    for fault in ("skipped", "failed"):
        if fault in found:
            return f"{fault}: {found[fault]}"
    where = f" on {found['gpus']} GPUs" if "gpus" in found else ""
    apart = f", engine_kl {found['engine_kl']:.1e}" if "engine_kl" in found else ""
    finite = "" if found["loss_finite"] else ", the loss is not finite"
    return f"{found['updates']} in {found['seconds']:.0f} s, loading included{where}{apart}{finite}"


def _reset_peak() -> None:
    import torch

    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()


def _peak_mib() -> float:
    import torch

    return torch.cuda.max_memory_allocated() / 2**20 if torch.cuda.is_available() else 0.0


# The command -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GpuCheckOptions:
    """Check and measure training on this machine's GPU: make a policy, train it with SkillC, write figures."""

    out: Path = Path("runs/gpu_check")
    """Folder for policy, run and figures."""
    steps: int = GpuCheckConfig.steps
    """SkillC updates."""
    engine: str = GpuCheckConfig.engine
    """Who generates: transformers, vllm, or an engine of your own as module:NAME."""
    tiny: bool = False
    """Take 0.9 instead of some 28 million parameters, and little cloning."""
    allow_cpu: bool = False
    """Run without a GPU too, to try the check itself."""

    def config(self) -> GpuCheckConfig:
        """What the check is asked to do."""
        config = GpuCheckConfig(out=self.out, steps=self.steps, engine=self.engine, allow_cpu=self.allow_cpu)
        if not self.tiny:
            return config
        return replace(config, size=TINY, demonstrations=240, cloning_batches=20, tasks_per_step=4, group_size=4)


def check(options: GpuCheckOptions) -> int:
    """Runs the command."""
    table = as_table(run_gpu_check(options.config(), progress=make_progress()))
    (options.out / "gpu_check.md").write_text(table + "\n", encoding="utf-8")
    say(table)
    return 0


COMMAND = Command(GpuCheckOptions, check)
