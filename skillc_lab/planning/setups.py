"""Machines, and the settings of full-size runs: which model, which machine, which settings make it fit."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from skillc_gym.errors import require_name
from trainers.base import Count, Options, Positive, Share
from trainers.config import TrainConfig

GIB = 2**30
LAUNCHERS = ("fsdp2", "zero3")
"""Kinds of sharding for which a configuration of accelerate comes along."""
Sharding = Literal["none", "fsdp2", "zero3"]

_FOLDER = Path(str(resources.files("skillc_lab.planning")))
_SETUPS: Mapping[str, Any] = json.loads((_FOLDER / "setups.json").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Machine(Options):
    """GPUs and how the training state lies on them.

    Attributes:
        gpus: Training processes, one GPU each.
        gpu_memory: Memory of one GPU in GiB.
        sharding: "none": each GPU holds everything (data parallel); "fsdp2", "zero3": weights, gradients, optimiser
            and reference are spread over all GPUs and gathered layer by layer.
        reserve: Share of a GPU's memory that is left to the driver, to kernels and to fragmentation.
        tflops: Operations per second of one GPU in updates, in 10^12, as ``skillc gpu-check`` measures them; None if
            unknown.
        host_memory: Memory of the machine beside its GPUs in GiB; None if unknown.
        disk: Speed of the disk in GB per second.
    """

    gpus: Count = 1
    gpu_memory: Positive = 80.0
    sharding: Sharding = "none"
    reserve: Share = 0.06
    tflops: Positive | None = None
    host_memory: Positive | None = None
    disk: Positive = 1.0

    @property
    def usable(self) -> float:
        """Bytes of one GPU that a run may fill."""
        return self.gpu_memory * GIB * (1 - self.reserve)

    @property
    def shards(self) -> int:
        """Over how many GPUs the training state is spread."""
        return 1 if self.sharding == "none" else self.gpus


@dataclass(frozen=True)
class Setup:
    """One entry of ``setups.json``: what it trains where, its longest row in tokens, and the run's settings."""

    summary: str
    machine: Machine
    row_tokens: int
    settings: Mapping[str, Any]

    @property
    def config(self) -> TrainConfig:
        """The run's configuration."""
        return TrainConfig(**self.settings)


def setup_names() -> tuple[str, ...]:
    """All set-ups that come along."""
    return tuple(_SETUPS)


def load_setup(name: str) -> Setup:
    """Reads a set-up; an UnknownNameError if there is none of that name."""
    require_name("set-up", name, _SETUPS)
    values = _SETUPS[name]
    return Setup(**{**values, "machine": Machine(**values["machine"])})


def launcher_file(name: str) -> Path:
    """Accelerate's configuration for a kind of sharding; an UnknownNameError if there is none."""
    require_name("launcher", name, LAUNCHERS)
    return _FOLDER / "launchers" / f"{name}.json"


def launch_command(config: Mapping[str, Any], machine: Machine) -> str:
    """The command that starts a run with the settings that differ from the defaults."""
    words = shlex.join(typed_words(config))
    if machine.gpus == 1:
        return f"skillc train {words}"
    kind = machine.sharding
    shard = f' --config_file "$(skillc plan --launcher {kind})"' if kind in LAUNCHERS else ""
    return f"accelerate launch{shard} --num_processes {machine.gpus} --module skillc_lab train {words}"


def typed_words(config: Mapping[str, Any]) -> list[str]:
    """Settings as they are typed."""
    return [f"{name}={_typed(value)}" for name, value in config.items()]


def _typed(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return json.dumps(value) if isinstance(value, dict | bool) else str(value)
