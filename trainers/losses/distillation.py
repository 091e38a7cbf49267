"""Distillation: sampled tokens or whole distributions behind another prompt, where a teacher reads the skill."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from skillc_gym.errors import ConfigError
from trainers.advantages import FloatArray, RolloutBatch
from trainers.base import Count, Fraction, NotNegative, Positive
from trainers.losses.base import Loss, LossInputs, TokenLoss, View, Weights, require_equal_shapes

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class SelfDistillation(Loss):
    """Base of the losses in which the policy with the skill teaches the one without; acts on skill-free rollouts."""

    name: ClassVar[str] = "distillation"
    taught_behind: ClassVar[View | None] = "with_skill"
    acts_on = "skill_free"
    coefficient: NotNegative = 0.01
    teacher_weights: Weights = "policy"
    inputs = frozenset({"teacher_logprobs"})

    def __call__(self, inputs: LossInputs) -> TokenLoss:
        """The formula; logs ``teacher_gap``, the mean of ``log p_T - log p_S``, and what it adds to the loss."""
        teacher = inputs["teacher_logprobs"]
        gap = (teacher - inputs.logprobs).detach()
        values = self._formula(inputs, teacher)
        return TokenLoss(values, {"teacher_gap": gap, "teacher_part": self.coefficient * values.detach().abs()})

    def _formula(self, inputs: LossInputs, teacher: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError


@dataclass(frozen=True)
class Opsd(SelfDistillation):
    """:func:`trainers.losses.opsd`: OPSD (arXiv 2601.18734) on sampled tokens, without a gate."""

    def _formula(self, inputs: LossInputs, teacher: torch.Tensor) -> torch.Tensor:
        return opsd(inputs.logprobs, teacher)


@dataclass(frozen=True)
class GrpoOpsd(SelfDistillation):
    """:func:`trainers.losses.grpo_opsd`."""

    def _formula(self, inputs: LossInputs, teacher: torch.Tensor) -> torch.Tensor:
        return grpo_opsd(inputs.logprobs, teacher)


def opsd(student: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
    """``sg(log p_T) - log p_S`` per sampled token.

    Its expectation under the student is minus the reverse Kullback-Leibler divergence, but its gradient is
    ``-grad log p_S``: it raises every sampled token alike, whatever the teacher thinks of it. SDAR's scripts for OPSD
    run :func:`sdar` with its gate instead. Over the whole vocabulary it is :func:`trainers.losses.generalised_jsd`.

    From log-probabilities of the sampled tokens without the skill and with it, tensors of one shape (ConfigError), of
    which the latter carry no gradient; a loss of that shape, without its coefficient (0.01 in the released code).
    """
    require_equal_shapes(student=student, teacher=teacher)
    return teacher.detach() - student


def grpo_opsd(student: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
    """Half of :func:`opsd`, as it is added to GRPO's loss: :func:`trainers.losses.sdar` with a gate of beta 0."""
    return 0.5 * opsd(student, teacher)


@dataclass(frozen=True)
class Sdar(SelfDistillation):
    """:func:`trainers.losses.sdar`."""

    sharpness: NotNegative = 5.0
    """Of the gate (the paper's beta)."""

    def _formula(self, inputs: LossInputs, teacher: torch.Tensor) -> torch.Tensor:
        return sdar(inputs.logprobs, teacher, self.sharpness)


def sdar(student: torch.Tensor, teacher: torch.Tensor, beta: float = 5.0) -> torch.Tensor:
    """SDAR (arXiv 2605.15155): ``g (log p_T - log p_S)`` with the gate ``g = sg sigmoid(beta (log p_T - log p_S))``.

    The gradient is ``-g grad log p_S``: every sampled token is raised, the more the better the teacher likes it; with
    ``beta = 0`` by half of :func:`opsd`, of which arguments, result and errors are.
    """
    require_equal_shapes(student=student, teacher=teacher)
    gap = teacher.detach() - student
    return (beta * gap).sigmoid().detach() * gap


@dataclass(frozen=True)
class SkillSd(SelfDistillation):
    """:func:`trainers.losses.skill_sd`."""

    coefficient: NotNegative = 0.001
    inputs = frozenset({"teacher_logprobs", "old_logprobs"})

    def _formula(self, inputs: LossInputs, teacher: torch.Tensor) -> torch.Tensor:
        found = skill_sd(inputs.logprobs, teacher, inputs.old_logprobs)
        return found * inputs.optional.get("sampling_ratio", 1.0)  # from who sampled to the weights before the update


_LOWEST_DIFFERENCE = -20.0
_HIGHEST_LOG_RATIO = 10.0


def skill_sd(student: torch.Tensor, teacher: torch.Tensor, old: torch.Tensor) -> torch.Tensor:
    """Skill-SD (arXiv 2604.10674, as in SDAR's released code): an importance-weighted reverse divergence.

    ``rho k3(d)`` per sampled token, never negative: ``k3 = exp(-d) - 1 + d``, ``d = log p_S - log p_T``, ``rho = p_S /
    p_old``, which carries gradient, and makes it that of the reverse Kullback-Leibler divergence. ``d`` is cut at -20
    from below and ``log rho`` at 10 from above. Arguments and errors as of :func:`opsd`.
    """
    require_equal_shapes(student=student, teacher=teacher, old=old)
    difference = (student - teacher.detach()).clamp(min=_LOWEST_DIFFERENCE)
    ratio = (student - old.detach()).clamp(max=_HIGHEST_LOG_RATIO).exp()
    return ratio * ((-difference).exp() - 1 + difference)


@dataclass(frozen=True)
class Relabelling(Loss):
    """:func:`trainers.losses.relabelling`: the study's variant of that name, on relabelled rows alone."""

    name: ClassVar[str] = "relabelling"
    acts_on = "rows"
    coefficient: NotNegative = 1.0
    alpha: NotNegative = 0.0
    """Power of the truncated ratio; 0 imitates."""
    cap: Positive = 1.0
    """Where the ratio is truncated."""

    def __call__(self, inputs: LossInputs) -> TokenLoss:
        """The loss; logs ``hint_reliance``, the mean of ``log pi_old(a | h) - log pi(a | h0)``."""
        old = inputs["sampling_logprobs"]
        values = relabelling(inputs.logprobs, old, self.alpha, self.cap)
        return TokenLoss(values, {"hint_reliance": (old - inputs.logprobs).detach()})


def relabelling(student: torch.Tensor, old: torch.Tensor, alpha: float = 0.0, cap: float = 1.0) -> torch.Tensor:
    """``-sg[min(cap, pi(a | h0) / pi_old(a | h))]^alpha log pi(a | h0)`` per sampled token.

    ``h`` is the history with the skill, behind which the token was sampled, ``h0`` the one without. ``alpha = 0``
    imitates: biased, but it works where the policy alone never takes the step. ``alpha = 1`` weighs by the truncated
    ratio of the token. The full estimator weighs each episode with :func:`trainers.advantages.relabelling_weights`.

    From ``log pi(a | h0)`` and ``log pi_old(a | h)``, tensors of one shape (ConfigError); the latter carry no gradient.
    """
    require_equal_shapes(student=student, old=old)
    ratio = (student.detach() - old.detach()).exp().clamp(max=cap)
    return -(ratio**alpha) * student


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
    coefficient: NotNegative = 0.01
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

    The gate is the curriculum's, so the term fades as the gap between success with and without the skill closes, and
    not with the skill's withdrawal: of a type whose gap was open then, the teacher goes on reading the skill. Unlike
    the reverse divergence's, its gradient does not vanish where the student never takes the teacher's step.
    """

    name: ClassVar[str] = "forward_distillation"
    coefficient: NotNegative = 0.1
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
    coefficient: NotNegative = 1.0
    top_k: Count | None = 64

    def _formula(self, student: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
        size = teacher.shape[-1]
        best = teacher.topk(min(self.top_k or size, size), dim=-1).indices
        rest = 1 - student.softmax(-1).gather(-1, best).sum(-1)
        return super()._formula(student, teacher) + 0.5 * math.log(2) * rest.clamp(min=0)
