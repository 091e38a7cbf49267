"""``skillc gpu-check``: check and measure training on this machine's GPU."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from skillc_gym.envs.registry import warm_started
from skillc_gym.errors import ConfigError, missing_extra
from skillc_lab.cli.command import Command, say
from skillc_lab.planning import Machine, make_plan, measured
from skillc_lab.tables import Table
from trainers.config import TrainConfig
from trainers.engines import check_engine
from trainers.models import without_bars
from trainers.tracking import Progress, RunFolder, make_progress, provenance, write_json
from trainers.training import run
from trainers.warmstart import SMALL, TINY, CloningConfig, DemonstrationConfig, PolicyRecipe, PolicySize, make_policy


@dataclass(frozen=True)
class GpuCheckOptions:
    """Check and measure training on this machine's GPU: make a policy, train it with SkillC, write figures."""

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
    panel_per_type: int = 8
    generator: Mapping[str, Any] = field(default_factory=lambda: dict(warm_started("alfworld")[1].generator))


def _run(options: GpuCheckOptions) -> int:
    scale = Scale(TINY, 240, 20, tasks_per_step=4, group_size=4) if options.tiny else Scale()
    with without_bars():
        report = run_gpu_check(options, scale, progress=make_progress())
    table = as_table(report)
    (options.out / "gpu_check.md").write_text(table + "\n", encoding="utf-8")
    say(table)
    finite = all(report[part].get("loss_finite", True) for part in ("training", "fsdp2", "sleep"))
    return 0 if finite and not any("failed" in report[part] for part in ("fsdp2", "sleep")) else 1


def run_gpu_check(options: GpuCheckOptions, scale: Scale, *, progress: Progress) -> dict[str, Any]:
    """Runs the check and writes ``gpu_check.json``.

    Returns:
        Device, versions, and per phase: seconds, tokens per second of generation and of the update, peak memory in MiB,
        and the success rates of the first and the last update; how two updates went under FSDP2 on all GPUs, and with a
        vLLM that sleeps meanwhile.
    """
    import torch

    gpu = torch.cuda.is_available()
    if not (gpu or options.allow_cpu):
        raise ConfigError(
            "No CUDA device. On the processor alone the check says nothing of speed; --allow-cpu runs it."
        )
    config, started = _training(options, scale), time.perf_counter()
    check_engine(config.engine, config.engine_options, training=True)
    if config.engine == "vllm" and find_spec("vllm") is None:
        raise missing_extra("vllm", "vllm")
    if any(RunFolder(options.out / part).metrics() for part in ("run", "fsdp2", "sleep")):
        raise ConfigError(f"{options.out} holds an earlier check; name another folder by --out, or delete it.")
    RunFolder(options.out / "run").to_resume(config)
    warm_start = _warm_start(options.out / "policy", scale)
    engines = measured.engine_agreement(options.out / "policy")
    _reset_peak()
    result = run(config, progress=progress)
    if not result.finished:
        raise ConfigError(f"The check times whole runs, and its training was stopped; delete {options.out}, try again.")
    records, peak = [record for record in result.metrics if record["event"] == "train"], _peak_mib()
    reached, possible = update_tflops(records, warm_start["parameters"]), measured.matmul_tflops()
    speed = {"update_tflops": reached, "matmul_tflops": possible, "utilisation": reached / possible}
    if gpu:
        torch.cuda.empty_cache()  # what follows runs in other processes on the same GPUs
    short = replace(config, steps=2, validate_every=2, panel_per_type=1)
    sharded, sleeping = (replace(short, run=str(options.out / name)) for name in ("fsdp2", "sleep"))
    report = {
        "device": torch.cuda.get_device_name() if gpu else "cpu",
        "precision": "bfloat16 autocast over float32 weights" if gpu else "float32",
        "engine": options.engine,
        "versions": provenance(),
        "warm_start": warm_start,
        "engines": engines,
        "planned_mib": make_plan(config, Machine()).update / 2**20,
        "training": {**training_figures(records), **speed, "peak_memory_mib": peak},
        "fsdp2": measured.sharded_training(sharded, torch.cuda.device_count()),
        "sleep": measured.sleeping_training(sleeping),
        "seconds": time.perf_counter() - started,
    }
    write_json(options.out / "gpu_check.json", report)
    return report


def _warm_start(folder: Path, scale: Scale) -> dict[str, Any]:
    import torch

    _reset_peak()
    began = time.perf_counter()
    tasks = {"data": "generated", "split": "train", "generator": scale.generator}
    recipe = PolicyRecipe(
        demonstrations=DemonstrationConfig(env_kwargs=tasks),
        episodes=scale.demonstrations,
        cloning=CloningConfig(batches=scale.cloning_batches, learning_rate=1e-3),
        size=scale.size,
    )
    card = make_policy(recipe, folder, device="cuda" if torch.cuda.is_available() else "cpu")
    figures = {name: card[name] for name in ("parameters", "loss_last")}
    return {**figures, "seconds": time.perf_counter() - began, "peak_memory_mib": _peak_mib()}


def _training(options: GpuCheckOptions, scale: Scale) -> TrainConfig:
    return TrainConfig(
        model=str(options.out / "policy"),
        method="skillc",
        data="generated",
        env_options={"generator": scale.generator},
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
        panel_per_type=scale.panel_per_type,
        engine=options.engine,
        run=str(options.out / "run"),
        resume="never",
    )


def _reset_peak() -> None:
    import torch

    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()


def _peak_mib() -> float:
    import torch

    return torch.cuda.max_memory_allocated() / 2**20 if torch.cuda.is_available() else 0.0


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
    }


def update_tflops(records: Sequence[Mapping[str, Any]], parameters: int) -> float:
    """Operations per second of updating, in 10^12: 6 per parameter and token of a row; the reference's do not count."""
    timed = records[1:] or records
    tokens = sum(record["prompt_tokens"] + record["tokens_generated"] for record in timed)
    return float(6 * parameters * tokens / sum(record["seconds_update"] for record in timed) / 1e12)


def as_table(report: Mapping[str, Any]) -> str:
    """The report as a Markdown table."""
    training, engines = report["training"], report["engines"]
    rows = {
        "device": report["device"],
        "precision": report["precision"],
        "policy": f"{report['warm_start']['parameters'] / 1e6:.1f} M parameters",
        "engine": report["engine"],
        "generated tokens/s (with environments)": f"{training['generated_tokens_per_second']:,.0f}",
        "updated own tokens/s": f"{training['updated_tokens_per_second']:,.0f}",
        "model TFLOP/s of updating": f"{training['update_tflops']:.4g}",
        "of what a matrix product reaches": f"{training['utilisation']:.1%} of {training['matmul_tflops']:.4g}",
        "seconds per update": f"{training['seconds_per_update']:.2f}",
        "peak memory, training": f"{training['peak_memory_mib']:,.0f} MiB",
        "planned for rows of full length": f"{report['planned_mib']:,.0f} MiB",
        **{f"{engine}: greedy tokens, log-probabilities": _agreement(found) for engine, found in engines.items()},
        "two updates under FSDP2": _outcome(report["fsdp2"]),
        "two updates with a vLLM that sleeps": _outcome(report["sleep"]),
        "losses": "finite" if training["loss_finite"] else "not finite",
        "success, first and last update": f"{training['success_first']:.2f}, {training['success_last']:.2f}",
        "seconds in all": f"{report['seconds']:.0f}",
    }
    return Table(["what", "figure"], list(rows.items())).markdown()


def _agreement(found: Mapping[str, Any]) -> str:
    if "skipped" in found:
        return f"skipped: {found['skipped']}"
    return f"{found['same_tokens']:.1%} the same, off by {found['logprob_error']:.1e} at most"


def _outcome(found: Mapping[str, Any]) -> str:
    for fault in ("skipped", "failed"):
        if fault in found:
            return f"{fault}: {found[fault]}"
    where = f" on {found['gpus']} GPUs" if "gpus" in found else ""
    apart = f", engine_kl {found['engine_kl']:.1e}" if "engine_kl" in found else ""
    finite = "" if found["loss_finite"] else ", the loss is not finite"
    return f"{found['updates']} in {found['seconds']:.0f} s, loading included{where}{apart}{finite}"


COMMAND = Command(GpuCheckOptions, _run)
