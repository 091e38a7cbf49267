"""Weights that are spread over processes: what a run may then ask for, and whole weights for rollouts."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.distributed.tensor import DTensor
from trl.distributed import DistributedBackend
from trl.trainer import grpo_trainer

from skillc_gym.errors import ConfigError
from trainers.base import check_sharded
from trainers.learner.objective import Objective
from trainers.models import cast


class WholeCopy:
    """A copy of a policy that each process has for itself, to generate out of step or in another type.

    It is made before the policy is sharded in place. It takes the memory of all weights once more on each device, and
    one gathering of the trained weights whenever they have changed.
    """

    def __init__(self, policy: torch.nn.Module, device: torch.device, dtype: torch.dtype | None = None) -> None:
        self.model = frozen_copy(policy)
        if dtype is not None:
            cast(self.model.parameters(), dtype)
        self.model.to(device)
        self._policy = policy
        self._filled = False

    @torch.no_grad()
    def refresh(self) -> None:
        """Copies the weights, the frozen ones only the first time; all processes must do it together."""
        mine = dict(self.model.named_parameters())
        for name, parameter in self._policy.named_parameters():
            if parameter.requires_grad or not self._filled:
                mine[name].copy_(whole(parameter))
        self._filled = True


def whole(tensor: torch.Tensor) -> torch.Tensor:
    """All of a tensor of which this process may have a part; all processes must ask together."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


@torch.no_grad()
def merged_weights(policy: Any, accelerator: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """The whole weights of a policy with adapters, these added; all processes must go through them together.

    The policy stays as it is: to add adapters in place and take them out again rounds the frozen weights every time.
    """
    adapted = {f"{name}.base_layer.weight": m for name, m in policy.named_modules() if hasattr(m, "get_delta_weight")}
    with DistributedBackend(accelerator).gather_params(list(policy.parameters())):
        for name, parameter in policy.named_parameters():
            if policy.prefix in name:
                continue
            value = whole(parameter.data.to(accelerator.device))
            if name in adapted:
                delta = adapted[name].get_delta_weight("default").to(accelerator.device)
                value = (value + whole(delta)).to(value.dtype)
            yield name.removeprefix("base_model.model.").replace(".base_layer", ""), value


def frozen_copy(model: Any) -> Any:
    """A model with weights of its own that are not trained, with the forward pass of its class."""
    made = copy.deepcopy(model).eval().requires_grad_(False)
    base = made.get_base_model() if hasattr(made, "peft_config") else made
    # TRL's fused forward is bound to the model that it was made for, and so would the copy's be.
    base.__dict__.pop("forward", None)
    return made


def check_sharding(accelerator: Any, objective: Objective, *, moving_reference: bool = False) -> None:
    """Refuses (ConfigError) what would fail in the middle of a sharded run; the message names the setting to change."""
    plugin = getattr(accelerator.state, "fsdp_plugin", None)
    if plugin is not None:
        _check_fsdp(plugin)
    if plugin is None and zero_stage(accelerator) != 3:
        return
    if plugin is None and objective.average_decay is not None:
        raise ConfigError(
            "A teacher that averages the weights needs them whole, and DeepSpeed has sharded them; shard with FSDP2."
        )
    check_sharded(objective.heads, moving_reference)


def _check_fsdp(plugin: Any) -> None:
    if plugin.fsdp_version != 2:
        raise ConfigError(
            f"Sharding needs FSDP2, and the launcher was asked for FSDP{plugin.fsdp_version}; pass --fsdp_version 2."
        )
    if "FULL" not in str(plugin.state_dict_type):
        raise ConfigError(
            "Checkpoints and the trained policy are whole files, and the launcher was asked for sharded ones; pass "
            "--fsdp_state_dict_type FULL_STATE_DICT."
        )
    if plugin.cpu_ram_efficient_loading:
        raise ConfigError(
            "Every process loads the weights before they are sharded, and the launcher was asked to load them on one "
            "alone; pass --fsdp_cpu_ram_efficient_loading false."
        )


@contextmanager
def sharded_by_layers() -> Iterator[None]:
    """TRL shards its reference as one unit, all of which every pass would gather at once."""
    plain = grpo_trainer.prepare_fsdp

    def prepare(model: Any, accelerator: Any) -> Any:
        for layer in getattr(model.get_decoder(), "layers", ()):
            plain(layer, accelerator)
        return plain(model, accelerator)

    grpo_trainer.prepare_fsdp = prepare
    try:
        yield
    finally:
        grpo_trainer.prepare_fsdp = plain


def zero_stage(accelerator: Any) -> int:
    """DeepSpeed's ZeRO stage; 0 without DeepSpeed."""
    plugin = getattr(accelerator.state, "deepspeed_plugin", None)
    return int(plugin.zero_stage) if plugin is not None else 0
