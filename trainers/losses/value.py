"""Losses beside the policy gradient: a critic's error and an entropy bonus."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from trainers.losses.base import Head, Loss, LossInputs, TokenLoss, require_equal_shapes

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Value(Loss):
    """PPO's value loss (arXiv 1707.06347), :func:`clipped_value_loss`, of a linear head over the last hidden states.

    The scheme that asks for ``values`` gives the targets ``value_targets`` and the values before the update,
    ``old_values``.
    """

    name: ClassVar[str] = "value"
    targets: ClassVar[frozenset[str]] = frozenset({"value_targets", "old_values"})
    coefficient: float = 0.5
    value_clip: float = 0.5
    """How far an update may move a value."""
    inputs = frozenset({"values"})

    @property
    def heads(self) -> Mapping[str, Head]:
        """One number per token."""
        return {"values": _head}

    def __call__(self, inputs: LossInputs) -> TokenLoss:
        """The loss; logs ``value_error``, the squared distance from the targets."""
        values, targets = inputs["values"], inputs["value_targets"]
        loss = clipped_value_loss(values, inputs["old_values"], targets, self.value_clip)
        return TokenLoss(loss, {"value_error": (values - targets).detach().square()})


def clipped_value_loss(
    values: torch.Tensor, old_values: torch.Tensor, targets: torch.Tensor, clip: float = 0.5
) -> torch.Tensor:
    """``max((V - R)^2, (V_clip - R)^2) / 2`` with ``V_clip`` within ``clip`` of the value before the update.

    R is advantage plus old value. Tensors are of one shape (ConfigError); only ``values`` carry a gradient.
    """
    require_equal_shapes(values=values, old_values=old_values, targets=targets)
    old, target = old_values.detach(), targets.detach()
    near = values.clamp(old - clip, old + clip)
    return 0.5 * (values - target).square().maximum((near - target).square())


def _head(width: int) -> torch.nn.Module:
    """A linear map that starts at 0, so that the first advantages are the returns themselves."""
    import torch

    head = torch.nn.Linear(width, 1)
    torch.nn.init.zeros_(head.weight)
    torch.nn.init.zeros_(head.bias)
    return head


@dataclass(frozen=True)
class EntropyBonus(Loss):
    """``-H(pi(. | h))`` per own token, in nats over the whole vocabulary (Mnih et al. 2016, arXiv 1602.01783).

    It keeps a policy from settling too soon.
    """

    name: ClassVar[str] = "entropy_bonus"
    coefficient: float = 0.01
    inputs = frozenset({"logits"})

    def __call__(self, inputs: LossInputs) -> TokenLoss:
        """The negative entropy at every own token."""
        logprobs = inputs["logits"].log_softmax(-1)
        return TokenLoss((logprobs.exp() * logprobs).sum(-1))
