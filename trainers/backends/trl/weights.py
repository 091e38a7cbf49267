"""Weights beside those that are trained: whole copies of what processes share, and what a recipe keeps or trains."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch.distributed.tensor import DTensor
from trl.distributed import DistributedBackend
from trl.trainer.callbacks import SyncRefModelCallback
from trl.trainer.utils import add_fused_lm_head

from skillc_gym.errors import CheckpointError
from trainers.config import TrainConfig
from trainers.learner.objective import Objective
from trainers.models import cast

_FILE = "extras.pt"


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
    layers = ((name, layer) for name, layer in policy.named_modules() if hasattr(layer, "get_delta_weight"))
    adapted = {_adapted_weight(name, layer): layer for name, layer in layers}
    with DistributedBackend(accelerator).gather_params(list(policy.parameters())):
        for name, parameter in policy.named_parameters():
            if policy.prefix in name:
                continue
            value = whole(parameter.data.to(accelerator.device))
            if name in adapted:
                delta = adapted[name].get_delta_weight("default").to(accelerator.device)
                value = (value + whole(delta)).to(value.dtype)
            yield name.removeprefix("base_model.model.").replace(".base_layer", ""), value


def _adapted_weight(name: str, layer: Any) -> str:
    """The name of the weight that a layer's adapter adds to."""
    inner = layer
    while hasattr(inner, "base_layer"):  # each of an expert's weights has an adapter of its own, around the others'
        inner, name = inner.base_layer, f"{name}.base_layer"
    return f"{name}.{getattr(layer, 'parameter_name', 'weight')}"


def frozen_copy(model: Any) -> Any:
    """A model with weights of its own that are not trained, with the forward pass of its class."""
    made = copy.deepcopy(model).eval().requires_grad_(False)
    base = made.get_base_model() if hasattr(made, "peft_config") else made
    # TRL's fused forward is bound to the model that it was made for, and so would the copy's be.
    base.__dict__.pop("forward", None)
    return made


class Extras:
    """Made when the model is there; part of every checkpoint, but not of the trained policy.

    ``objective`` says which average it asks for and which ``heads``, by the name of the figure they give.
    ``reference`` is the KL penalty's model where it follows the policy: after each ``every`` updates, of which the
    policy then makes up ``weight``.
    """

    def __init__(self, objective: Objective, model: Any, config: TrainConfig, reference: Any) -> None:
        self.model, self.reference = model, reference
        self.every, self.weight = config.reference_sync_every, config.reference_sync_weight
        self.decay = objective.average_decay
        self.average: Any = None
        if self.decay is not None:
            # In bfloat16 a step towards the policy would be rounded away.
            self.average = frozen_copy(model).float()
            base = self.average.get_base_model() if hasattr(self.average, "peft_config") else self.average
            add_fused_lm_head(base, temperature=config.temperature, outputs=("log_probs", "entropy"))
        width = model.get_output_embeddings().in_features
        device = next(model.parameters()).device
        self.heads = {name: make(width) for name, make in objective.heads.items()}
        self.modules = torch.nn.ModuleList(self.heads.values()).to(device)

    def add_to(self, optimizer: torch.optim.Optimizer) -> None:
        """Gives the heads to the policy's optimiser, once."""
        mine = list(self.modules.parameters())
        known = {id(p) for group in optimizer.param_groups for p in group["params"]}
        if mine and id(mine[0]) not in known:
            optimizer.add_param_group({"params": mine, "weight_decay": 0.0})

    def beside(self, model: torch.nn.Module) -> torch.nn.Module:
        """The model and the heads as one, whose gradient has one norm; the model itself without heads."""
        return torch.nn.ModuleList([model, self.modules]) if self.heads else model

    def share_gradients(self, accelerator: Any) -> None:
        """Averages the heads' gradients over the processes, as data parallelism does with the policy's."""
        if accelerator.num_processes > 1:
            for parameter in self.modules.parameters():
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
                parameter.grad = accelerator.reduce(parameter.grad, reduction="mean")

    @torch.no_grad()
    def after_update(self, update: int) -> None:
        """Moves the average towards the policy, and the reference when it is due."""
        if self.reference is not None and update % self.every == 0:
            SyncRefModelCallback.sync_target_model(self.model, self.reference, self.weight)
        if self.average is not None and self.decay is not None:
            for mean, value in zip(self.average.parameters(), self.model.parameters(), strict=True):
                mean.lerp_(whole(value).to(mean.dtype), 1.0 - self.decay)

    def save(self, folder: Path) -> None:
        """Writes them into a checkpoint, if there are any."""
        if self._empty:
            return
        kept = {"average": self.average, "reference": self.reference}
        states = {name: None if model is None else model.state_dict() for name, model in kept.items()}
        torch.save({"heads": self.modules.state_dict(), **states}, folder / _FILE)

    def load(self, folder: Path) -> None:
        """Reads them from a checkpoint; a CheckpointError if it has none."""
        if self._empty:
            return
        path = folder / _FILE
        if not path.is_file():
            raise CheckpointError(f"{folder} lacks {_FILE}, which this recipe's losses need; resume from another one.")
        saved = torch.load(path, weights_only=True, map_location="cpu")
        self.modules.load_state_dict(saved["heads"])
        for name, model in (("average", self.average), ("reference", self.reference)):
            if model is not None:
                model.load_state_dict(saved[name])

    @property
    def _empty(self) -> bool:
        return not self.heads and self.average is None and self.reference is None
