"""The paths of training that take a process of their own to check: sharded weights, and a vLLM that sleeps."""

from __future__ import annotations

import importlib.util
import json
import math
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from skillc_lab.planning import launcher_file
from trainers.config import TrainConfig
from trainers.tracking.run_folder import RunFolder

__all__ = ["matmul_tflops", "sharded_training", "sleeping_training", "trained_apart"]

_COMMAND = "skillc_lab"
_PATIENCE = 240.0


def matmul_tflops(*, size: int = 4096, seconds: float = 0.5) -> float:
    """What this device reaches in a product of large matrices, in 10^12 operations per second.

    It is bfloat16 on a GPU, float32 on a processor: what a model's utilisation is measured against.

    Args:
        size: Rows and columns; a quarter of it on a processor.
        seconds: For how long products are computed, after one that is not counted.
    """
    import torch

    cuda = torch.cuda.is_available()
    size = size if cuda else size // 4
    kind: dict[str, Any] = {"device": "cuda" if cuda else "cpu", "dtype": torch.bfloat16 if cuda else torch.float32}
    left, right = torch.ones(2, size, size, **kind)
    wait = torch.cuda.synchronize if cuda else _nothing
    _ = left @ right
    wait()
    began, products = time.perf_counter(), 0
    while (spent := time.perf_counter() - began) < seconds or not products:
        _ = left @ right
        wait()
        products += 1
    return 2 * size**3 * products / max(spent, 1e-9) / 1e12


def sharded_training(config: TrainConfig, gpus: int) -> dict[str, Any]:
    """Trains under FSDP2 on all GPUs.

    Args:
        config: A short run in a folder of its own; its groups become a multiple of the GPUs.
        gpus: How many there are.

    Returns:
        As of :func:`trained_apart`, with ``gpus``; or ``skipped`` with the reason.
    """
    if not gpus:
        return {"skipped": "no GPU"}
    groups = -(-config.tasks_per_step // gpus) * gpus
    launcher = [sys.executable, "-m", "accelerate.commands.launch", "--config_file", str(launcher_file("fsdp2"))]
    launcher += ["--num_processes", str(gpus), "--module", _COMMAND]
    return {"gpus": gpus, **trained_apart(launcher, replace(config, tasks_per_step=groups))}


def sleeping_training(config: TrainConfig) -> dict[str, Any]:
    """Trains with a vLLM that gives its memory back during updates; its weights are sent again after each.

    Args:
        config: A short run in a folder of its own.

    Returns:
        As of :func:`trained_apart`; or ``skipped`` with the reason.
    """
    if importlib.util.find_spec("vllm") is None:
        return {"skipped": "vllm is not installed"}
    return trained_apart([sys.executable, "-m", _COMMAND], replace(config, engine="vllm", vllm_sleep=True))


def trained_apart(program: Sequence[str], config: TrainConfig, *, patience: float = _PATIENCE) -> dict[str, Any]:
    """Runs ``train`` as another program.

    Args:
        program: What stands before the word ``train``.
        config: The run.
        patience: Seconds after which it is given up.

    Returns:
        ``seconds``, ``updates``, ``loss_finite`` and, where the engine reports it, ``engine_kl`` of the last update; or
        ``failed`` with what it said last, all of which is then beside the run's folder.
    """
    began = time.perf_counter()
    try:
        done = subprocess.run(
            [*program, "train", *_words(config)], capture_output=True, text=True, check=False, timeout=patience
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"took longer than {patience:g} s"}
    if done.returncode:
        return {"failed": _last_words(done, Path(f"{config.run}.log"))}
    records = [record for record in RunFolder(Path(config.run)).metrics() if record["event"] == "train"]
    found = {
        "seconds": time.perf_counter() - began,
        "updates": len(records),
        "loss_finite": all(record["loss"] is not None and math.isfinite(record["loss"]) for record in records),
    }
    return {**found, **{name: records[-1][name] for name in ("engine_kl",) if records and name in records[-1]}}


def _last_words(done: subprocess.CompletedProcess[str], log: Path) -> str:
    said = (done.stderr.strip() or done.stdout.strip() or f"status {done.returncode}").splitlines()
    log.write_text("\n".join(said) + "\n", encoding="utf-8")
    # A launcher's own complaint comes behind that of the process that failed.
    errors = [line for line in said if "rror:" in line and "ChildFailedError" not in line]
    return f"{(errors or said)[-1].strip()} (all of it: {log.name})"


def _words(config: TrainConfig) -> list[str]:
    """The settings that are not at their defaults, as they are typed."""
    plain = TrainConfig(model="").to_json()
    return [f"{name}={_written(value)}" for name, value in config.to_json().items() if value != plain[name]]


def _written(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(str, value))
    return json.dumps(value) if isinstance(value, dict | bool) else str(value)


def _nothing() -> None:
    """A processor has nothing to wait for."""
