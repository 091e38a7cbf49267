"""Settings of full-size runs, one file each: which model, which machine, which settings make it fit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from skillc_gym.errors import unknown_name
from skillc_lab.planning.machine import Machine
from trainers.config import TrainConfig

__all__ = ["LAUNCHERS", "Setup", "launch_command", "launcher_file", "load_setup", "setup_names"]

LAUNCHERS = ("fsdp2", "zero3")
"""Kinds of sharding for which a configuration of accelerate comes along."""


@dataclass(frozen=True)
class Setup:
    """One file of the folder ``setups``.

    Attributes:
        name: Its name.
        summary: One sentence on what it trains where.
        machine: The machine.
        row_tokens: Longest row that is expected.
        settings: The run's settings.
    """

    name: str
    summary: str
    machine: Machine
    row_tokens: int
    settings: Mapping[str, Any]

    @property
    def config(self) -> TrainConfig:
        """The run's configuration."""
        return TrainConfig(**self.settings)


def setup_names() -> tuple[str, ...]:
    """All that there are."""
    return tuple(sorted(entry.name.removesuffix(".json") for entry in _folder().iterdir() if _is_setup(entry.name)))


def load_setup(name: str) -> Setup:
    """Reads a set-up.

    Raises:
        UnknownNameError: There is none of that name.
    """
    if name not in setup_names():
        raise unknown_name("set-up", name, setup_names())
    values = json.loads((_folder() / f"{name}.json").read_text(encoding="utf-8"))
    return Setup(name, values["summary"], Machine(**values["machine"]), values["row_tokens"], values["settings"])


def launch_command(config: Mapping[str, Any], machine: Machine) -> str:
    """The command that starts a run.

    Args:
        config: The settings that differ from the defaults.
        machine: Where it runs.
    """
    words = " ".join(f"{name}={_written(value)}" for name, value in config.items())
    if machine.gpus == 1:
        return f"skillc train {words}"
    kind = machine.sharding
    shard = f' --config_file "$(skillc plan --launcher {kind})"' if kind in LAUNCHERS else ""
    return f"accelerate launch{shard} --num_processes {machine.gpus} --module skillc_lab train {words}"


def launcher_file(name: str) -> Path:
    """Accelerate's configuration for a kind of sharding.

    Raises:
        UnknownNameError: There is none of that name.
    """
    if name not in LAUNCHERS:
        raise unknown_name("launcher", name, LAUNCHERS)
    return Path(str(resources.files("skillc_lab.planning") / "launchers" / f"{name}.json"))


def _written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _folder() -> Any:
    return resources.files("skillc_lab.planning") / "setups"


def _is_setup(name: str) -> bool:
    return name.endswith(".json")
