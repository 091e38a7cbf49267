"""A method in one file: a critic on the policy's hidden states, its baseline and its loss."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from trainers.advantages import Advantages, RolloutBatch, Scheme
from trainers.losses import ClippedPolicyGradient, Loss, LossInputs, TokenLoss
from trainers.recipes import Recipe
from trainers.recipes.parts.allocation import Never


@dataclass(frozen=True)
class LessValue(Scheme):
    """The return less the critic's value of each token."""

    name: ClassVar[str] = "less_value"
    inputs: ClassVar[frozenset[str]] = frozenset({"values"})

    def __call__(self, batch: RolloutBatch) -> Advantages:
        values = batch.scores["values"]
        targets = [np.full(len(own), value) for own, value in zip(values, batch.returns, strict=True)]
        advantages = tuple(target - own for target, own in zip(targets, values, strict=True))
        return Advantages(advantages, targets={"target": targets})


@dataclass(frozen=True)
class Critic(Loss):
    """Squared error of the value."""

    name: ClassVar[str] = "critic"
    coefficient: float = 0.5

    @property
    def inputs(self) -> frozenset[str]:
        return frozenset({"values"})

    @property
    def heads(self) -> Mapping[str, Any]:
        def linear(width: int) -> Any:
            import torch

            return torch.nn.Linear(width, 1)

        return {"values": linear}

    def __call__(self, inputs: LossInputs) -> TokenLoss:
        error = inputs["values"] - inputs["target"]
        return TokenLoss(error**2, {"value_error": error.detach() ** 2})


RECIPE = Recipe(
    name="critic",
    summary="A policy gradient with a critic.",
    allocation=Never(),
    advantage=LessValue(),
    losses=(ClippedPolicyGradient(), Critic()),
)
