"""The teacher's whole next-token distribution is matched."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from skillc_gym.errors import ConfigError
from trainers.advantages import FloatArray, RolloutBatch
from trainers.base import Count, Fraction
from trainers.losses.base import Loss, LossInputs, TokenLoss, View, Weights, require_equal_shapes

if TYPE_CHECKING:
    import torch


def generalised_jsd(student_logits: torch.Tensor, teacher_logits: torch.Tensor, beta: float) -> torch.Tensor:
    """``beta KL(T || M) + (1 - beta) KL(S || M)`` with ``M = beta T + (1 - beta) S``, per position.

    At the ends it is taken to be ``KL(T || S)`` for ``beta = 0`` and ``KL(S || T)`` for ``beta = 1`` (the limits of the
    divergence divided by ``beta (1 - beta)``), as in OPSD (arXiv 2601.18734) and GKD (arXiv 2306.13649).

    Logits are finite, of shape (..., vocabulary), and normalised here, so a restriction to the same top-k entries is
    renormalised; the teacher's carry no gradient. Gives shape (...), never negative up to rounding. A ConfigError if
    ``beta`` lies outside [0, 1], an argument is no tensor, or the shapes differ.
    """
    require_equal_shapes(student_logits=student_logits, teacher_logits=teacher_logits)
    if not 0.0 <= beta <= 1.0:
        raise ConfigError(f"beta lies in [0, 1], got {beta}")
    student = student_logits.log_softmax(-1)
    teacher = teacher_logits.detach().log_softmax(-1)
    if beta == 0.0:
        return _kl(teacher, student)
    if beta == 1.0:
        return _kl(student, teacher)
    mixture = (teacher + math.log(beta)).logaddexp(student + math.log1p(-beta))
    return beta * _kl(teacher, mixture) + (1 - beta) * _kl(student, mixture)


def _kl(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """``KL(first || second)`` of log-probabilities over the last axis."""
    return (first.exp() * (first - second)).sum(-1)


@dataclass(frozen=True)
class DistributionDistillation(Loss):
    """:func:`trainers.losses.generalised_jsd` between student and teacher; acts on the skill-free rollouts."""

    name: ClassVar[str] = "distillation"
    taught_behind: ClassVar[View | None] = "with_skill"
    acts_on = "skill_free"
    coefficient: float = 0.01
    mixture: Fraction = 0.5
    """Weight of the teacher in the mixture (the formula's beta): 0 is the forward divergence, 1 the reverse."""
    top_k: Count | None = None
    """Compare only the teacher's k likeliest tokens, renormalised; None for the whole vocabulary."""
    teacher_weights: Weights = "policy"
    inputs = frozenset({"logits", "teacher_logits"})

    def __call__(self, inputs: LossInputs) -> TokenLoss:
        """The divergence at every own token; logs it as ``divergence``, and what it adds to the loss."""
        values = self._formula(inputs["logits"], inputs["teacher_logits"])
        size = values.detach()
        return TokenLoss(values, {"divergence": size, "teacher_part": self.coefficient * size.abs()})

    def _formula(self, student: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
        if self.top_k is not None and self.top_k < teacher.shape[-1]:
            best = teacher.topk(self.top_k, dim=-1).indices
            student, teacher = student.gather(-1, best), teacher.gather(-1, best)
        return generalised_jsd(student, teacher, self.mixture)


@dataclass(frozen=True)
class ForwardDistillation(DistributionDistillation):
    """``max(0, 2 gate - 1) KL(sg T || S)`` on skill-free rollouts: the study's variant ``forward_distillation``.

    The gate is the curriculum's, so the term fades as the gap between success with and without the skill closes. Unlike
    the reverse divergence's, its gradient does not vanish where the student never takes the teacher's step.
    """

    name: ClassVar[str] = "forward_distillation"
    coefficient: float = 0.1
    mixture: Fraction = 0.0

    def on_rollouts(self, batch: RolloutBatch) -> FloatArray:
        """By how far the gate of the task's type stands open."""
        return super().on_rollouts(batch) * np.maximum(0.0, 2.0 * batch.signals.gate - 1.0)


@dataclass(frozen=True)
class GuidedDistillation(DistributionDistillation):
    """Skill0.5's internalisation: on rows of won guided episodes alone, over the teacher's 64 likeliest tokens.

    What the student gives to all others adds ``ln 2`` times half of it, as in the released code: where the student
    never takes the teacher's step, the renormalised divergence alone has next to no gradient.
    """

    name: ClassVar[str] = "guided_distillation"
    acts_on = "rows"
    coefficient: float = 1.0
    top_k: Count | None = 64

    def _formula(self, student: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
        size = teacher.shape[-1]
        best = teacher.topk(min(self.top_k or size, size), dim=-1).indices
        rest = 1 - student.softmax(-1).gather(-1, best).sum(-1)
        return super()._formula(student, teacher) + 0.5 * math.log(2) * rest.clamp(min=0)
