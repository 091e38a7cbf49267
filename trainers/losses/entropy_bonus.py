"""An entropy bonus: what keeps a policy from settling too soon."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from trainers.losses.base import Loss, LossInputs, TokenLoss

__all__ = ["EntropyBonus"]


@dataclass(frozen=True)
class EntropyBonus(Loss):
    """``-H(pi(. | h))`` per own token, in nats over the whole vocabulary (Mnih et al. 2016, arXiv 1602.01783).

    Attributes:
        coefficient: Weight in the sum of losses.
    """

    name: ClassVar[str] = "entropy_bonus"
    coefficient: float = 0.01

    @property
    def inputs(self) -> frozenset[str]:
        """The whole distribution."""
        return frozenset({"logits"})

    def __call__(self, inputs: LossInputs) -> TokenLoss:
        """The negative entropy at every own token."""
        logprobs = inputs["logits"].log_softmax(-1)
        return TokenLoss((logprobs.exp() * logprobs).sum(-1))
