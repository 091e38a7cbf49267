"""A method in one file: a loss that pulls the policy towards itself behind another prompt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from trainers.advantages import FloatArray, RolloutBatch
from trainers.losses import ClippedPolicyGradient, Loss, LossInputs, Teacher, TokenLoss
from trainers.recipes import Recipe


@dataclass(frozen=True)
class Pull(Loss):
    """The squared difference of log-probabilities, on skill-free rollouts (or on all)."""

    name: ClassVar[str] = "pull"
    coefficient: float = 0.1
    prompt: Literal["with_skill", "without_skill"] = "with_skill"
    weights: Literal["policy", "reference", "average"] = "policy"
    everywhere: bool = False

    @property
    def inputs(self) -> frozenset[str]:
        return frozenset({"teacher_logprobs"})

    @property
    def teacher(self) -> Teacher:
        return Teacher(self.prompt, self.weights, decay=0.5)

    def on_rollouts(self, batch: RolloutBatch) -> FloatArray:
        return (~batch.condition | self.everywhere).astype(float)

    def __call__(self, inputs: LossInputs) -> TokenLoss:
        gap = inputs.logprobs - inputs["teacher_logprobs"]
        return TokenLoss(gap**2, {"teacher_gap": gap.detach().abs()})


RECIPE = Recipe(
    name="pull", summary="Distils from the prompt with the skill.", losses=(ClippedPolicyGradient(), Pull())
)
