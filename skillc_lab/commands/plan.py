"""``skillc plan``: say how much memory a run takes on each GPU, and which setting makes it fit."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Any, Literal

from skillc_gym.errors import ConfigError
from skillc_lab.cli.command import Command, say
from skillc_lab.commands.train import complete_from_policy
from skillc_lab.planning import Machine, Sharding, launch_command, launcher_file, load_setup, make_plan, setup_names
from trainers.base import Count, Positive
from trainers.config import PolicySettings, Settings, TrainConfig
from trainers.tracking import complete_settings

_MACHINE = ("gpus", "gpu_memory", "sharding", "tflops", "host_memory", "disk")


@dataclass(frozen=True)
class PlannedPolicy(PolicySettings):
    """Policy and method."""

    model: str = ""
    """Folder or name of a transformers checkpoint, of which the configuration alone is read; or the set-up's."""


@dataclass(frozen=True)
class PlanOptions(Settings):
    """Say how much memory a training run takes on each GPU, whether it fits, and which setting mends what does not.

    Host memory and checkpoints are said too, and settings that training would refuse. Takes the settings of skillc
    train. No weights are fetched or loaded. The exit status is 0 if the run fits, else 1.

    Example: skillc plan --model Qwen/Qwen2.5-7B-Instruct --gpus 8 --gpu-memory 80 --engine vllm
    """

    policy_and_method: PlannedPolicy
    setup: str | None = None
    """Start from the settings and the machine of a full-size run that comes along, by name; "list" names them."""
    launcher: Literal["fsdp2", "zero3"] | None = None
    """Write nothing but the path of the configuration for accelerate launch that comes along for that sharding."""
    gpus: Count | None = None
    """GPUs, one training process each; the set-up's, or 1."""
    gpu_memory: Positive | None = None
    """Memory of one GPU in GiB; the set-up's, or 80."""
    sharding: Sharding | None = None
    """Whether weights, gradients, optimiser and reference are spread over the GPUs; the set-up's, or none."""
    row_tokens: Count | None = None
    """Longest row that is expected, in tokens; the set-up's, or max_context, the worst case."""
    tflops: Positive | None = None
    """Speed of one GPU in updates, in 10^12 operations per second (skillc gpu-check), to say how long they take."""
    host_memory: Positive | None = None
    """Memory of the machine beside its GPUs in GiB, where every process loads the weights first; any if none."""
    disk: Positive | None = None
    """Speed of the disk in GB per second, to say how long a checkpoint takes; the set-up's, or 1."""
    json: bool = False
    """Write JSON."""


def _run(options: PlanOptions) -> int:
    if options.setup == "list":
        say("\n".join(f"{name:<24}{load_setup(name).summary}" for name in setup_names()))
        return 0
    if options.launcher is not None:
        say(str(launcher_file(options.launcher)))
        return 0
    if not options.policy_and_method.model:
        raise ConfigError("--model is missing: name a checkpoint, or a set-up (skillc plan --setup list).")
    settings = _settings(options)
    machine = Machine(**{name: value for name in _MACHINE if (value := getattr(options, name)) is not None})
    found = make_plan(TrainConfig(**settings), machine, row_tokens=options.row_tokens)
    if options.json:
        say(json.dumps({**found.to_json(), "command": launch_command(settings, machine)}, indent=2))
    else:
        say(str(found))
        if found.fits:
            say(f"\n{launch_command(settings, machine)}")
    return 0 if found.fits else 1


def _completed(given: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """What was typed, then what the set-up says, then what the policy's folder does."""
    if given.get("setup") not in (None, "list"):
        setup = load_setup(given["setup"])
        machine = {name: getattr(setup.machine, name) for name in _MACHINE}
        given = {**setup.settings, **machine, "row_tokens": setup.row_tokens, **given}
    return complete_from_policy(given, learning=True)


def _settings(options: PlanOptions) -> dict[str, Any]:
    """The settings that are not at their defaults, and those that the set-up or the policy's folder names."""
    plain, named = TrainConfig(model=""), load_setup(options.setup).settings if options.setup else {}
    given = {name: value for group in fields(Settings) for name, value in vars(getattr(options, group.name)).items()}
    asked = {name: given[name] for name in ("model", "env", "engine", "env_options", "env_wrappers")}
    own, _ = complete_settings(asked, learning=True)
    kept = named.keys() | (own.keys() - asked.keys())
    return {name: value for name, value in given.items() if name in kept or value != getattr(plain, name)}


COMMAND = Command(
    PlanOptions,
    _run,
    main_options=(
        *("setup", "launcher", "gpus", "gpu_memory", "sharding", "row_tokens", "tflops", "host_memory", "json"),
        *("model", "method", "tasks_per_step", "group_size", "max_context", "engine", "micro_batches", "precision"),
        *("gradient_checkpointing", "lora_rank"),
    ),
    complete=_completed,
)
