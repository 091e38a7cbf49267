"""The policy with the skill teaches the policy without it, token by sampled token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from trainers.advantages import FloatArray, RolloutBatch
from trainers.losses.base import Loss, LossInputs, Teacher, TokenLoss, require_equal_shapes

if TYPE_CHECKING:
    import torch

__all__ = ["GrpoOpsd", "Opsd", "Sdar", "SelfDistillation", "SkillSd", "grpo_opsd", "opsd", "sdar", "skill_sd"]


# The base of losses in which the policy with the skill teaches the policy without it, token by sampled token.


@dataclass(frozen=True)
class SelfDistillation(Loss):
    """Base of the losses on sampled tokens; acts on the skill-free rollouts.

    Attributes:
        coefficient: Weight in the sum of losses.
        teacher_weights: Whose weights teach: the live policy's, a moving average of them, or those of the start.
    """

    name: ClassVar[str] = "distillation"
    coefficient: float = 0.01
    teacher_weights: Literal["policy", "average", "reference"] = "policy"

    @property
    def inputs(self) -> frozenset[str]:
        """What the teacher says of the sampled tokens."""
        return frozenset({"teacher_logprobs"})

    @property
    def teacher(self) -> Teacher:
        """The policy with the skill of the task's type in its prompt."""
        return Teacher("with_skill", self.teacher_weights)

    def on_rollouts(self, batch: RolloutBatch) -> FloatArray:
        """On those without the skill."""
        return (~batch.condition).astype(np.float64)

    def __call__(self, inputs: LossInputs) -> TokenLoss:
        """The formula; logs ``teacher_gap``, the mean of ``log p_T - log p_S``, and what it adds to the loss."""
        teacher = inputs["teacher_logprobs"]
        gap = (teacher - inputs.logprobs).detach()
        values = self.formula(inputs, teacher)
        return TokenLoss(values, {"teacher_gap": gap, "teacher_part": self.coefficient * values.detach().abs()})

    def formula(self, inputs: LossInputs, teacher: torch.Tensor) -> torch.Tensor:
        """The loss per token, (rows, tokens)."""
        raise NotImplementedError


# On-policy self-distillation in its sampled-token form (OPSD, arXiv 2601.18734, as in SDAR's released code).


@dataclass(frozen=True)
class Opsd(SelfDistillation):
    """:func:`trainers.losses.opsd`."""

    def formula(self, inputs: LossInputs, teacher: torch.Tensor) -> torch.Tensor:
        """The gap itself."""
        return opsd(inputs.logprobs, teacher)


@dataclass(frozen=True)
class GrpoOpsd(SelfDistillation):
    """:func:`trainers.losses.grpo_opsd`."""

    def formula(self, inputs: LossInputs, teacher: torch.Tensor) -> torch.Tensor:
        """Half of the gap."""
        return grpo_opsd(inputs.logprobs, teacher)


def opsd(student: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
    """``sg(log p_T) - log p_S`` per sampled token.

    Its expectation under the student is minus the reverse Kullback-Leibler divergence, but its gradient is
    ``-grad log p_S``: it raises every sampled token alike, whatever the teacher thinks of it. The form over the whole
    vocabulary is :func:`trainers.losses.generalised_jsd`; which of the two the published tables used is unsure.

    Args:
        student: Log-probabilities of the sampled tokens without the skill, any shape.
        teacher: The same with the skill in the prompt; carries no gradient.

    Returns:
        A loss to be minimised, without its coefficient (0.01 in the released code), of the same shape.

    Raises:
        ConfigError: An argument is no tensor, or the shapes differ.
    """
    require_equal_shapes(student=student, teacher=teacher)
    return teacher.detach() - student


def grpo_opsd(student: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
    """Half of :func:`opsd`, as it is added to GRPO's loss: :func:`trainers.losses.sdar` with a gate of beta 0."""
    return 0.5 * opsd(student, teacher)


# SDAR's gated self-distillation (arXiv 2605.15155).


@dataclass(frozen=True)
class Sdar(SelfDistillation):
    """:func:`trainers.losses.sdar`.

    Attributes:
        sharpness: Of the gate (the paper's beta).
    """

    sharpness: float = 5.0

    def formula(self, inputs: LossInputs, teacher: torch.Tensor) -> torch.Tensor:
        """The gated gap."""
        return sdar(inputs.logprobs, teacher, self.sharpness)


def sdar(student: torch.Tensor, teacher: torch.Tensor, beta: float = 5.0) -> torch.Tensor:
    """``g (log p_T - log p_S)`` per sampled token with the gate ``g = sg sigmoid(beta (log p_T - log p_S))``.

    The gradient is ``-g grad log p_S``: every sampled token is raised, the more the better the teacher likes it.

    Args:
        student: Log-probabilities of the sampled tokens without the skill, any shape.
        teacher: The same with the skill in the prompt; carries no gradient.
        beta: Sharpness of the gate; 0 gives :func:`trainers.losses.grpo_opsd`.

    Returns:
        A loss to be minimised, without its coefficient (0.01 in the released code), of the same shape.

    Raises:
        ConfigError: An argument is no tensor, or the shapes differ.
    """
    require_equal_shapes(student=student, teacher=teacher)
    gap = teacher.detach() - student
    return (beta * gap).sigmoid().detach() * gap


# Skill-SD's importance-weighted reverse divergence (arXiv 2604.10674, as re-implemented in SDAR's released code).


@dataclass(frozen=True)
class SkillSd(SelfDistillation):
    """:func:`trainers.losses.skill_sd`."""

    coefficient: float = 0.001

    @property
    def inputs(self) -> frozenset[str]:
        """The teacher's and the old log-probabilities."""
        return frozenset({"teacher_logprobs", "old_logprobs"})

    def formula(self, inputs: LossInputs, teacher: torch.Tensor) -> torch.Tensor:
        """The importance-weighted divergence."""
        return skill_sd(inputs.logprobs, teacher, inputs.old_logprobs)


_LOWEST_DIFFERENCE = -20.0
_HIGHEST_LOG_RATIO = 10.0


def skill_sd(student: torch.Tensor, teacher: torch.Tensor, old: torch.Tensor) -> torch.Tensor:
    """``rho k3(d)`` per sampled token: ``k3 = exp(-d) - 1 + d``, ``d = log p_S - log p_T``, ``rho = p_S / p_old``.

    ``rho`` carries gradient, which makes the gradient that of the reverse Kullback-Leibler divergence. ``d`` is cut at
    -20 from below and ``log rho`` at 10 from above.

    Args:
        student: Log-probabilities of the sampled tokens without the skill, any shape.
        teacher: The same with the skill in the prompt; carries no gradient.
        old: Under the weights that sampled; carries no gradient.

    Returns:
        A loss to be minimised, without its coefficient (0.001 in the released code), of the same shape; never negative.

    Raises:
        ConfigError: An argument is no tensor, or the shapes differ.
    """
    require_equal_shapes(student=student, teacher=teacher, old=old)
    difference = (student - teacher.detach()).clamp(min=_LOWEST_DIFFERENCE)
    ratio = (student - old.detach()).clamp(max=_HIGHEST_LOG_RATIO).exp()
    return ratio * ((-difference).exp() - 1 + difference)
