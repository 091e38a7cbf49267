"""The clipped objective and its KL penalty (method, section 5), also with a teacher; critic and entropy bonus."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from skillc_gym.errors import ConfigError
from trainers.base import Count, Fraction, NotNegative, Positive, RatioLevel
from trainers.losses.base import Head, Loss, LossInputs, TokenLoss, View, Weights, require_equal_shapes

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class ClippedPolicyGradient(Loss):
    """PPO's clipped surrogate, with the k3 penalty to the starting policy."""

    name: ClassVar[str] = "policy"
    reads_advantages: ClassVar[bool] = True
    coefficient: NotNegative = 1.0
    clip: NotNegative | None = None
    """Half width of the trust region; the run's (``clip=``) if None."""
    kl_coef: NotNegative | None = None
    """Weight of the penalty; the run's (``kl_coef=``) if None."""
    clip_high: NotNegative | None = None
    """Width of the trust region above 1; the run's (``clip_high=``) if None, and if that is None too, clip."""
    ratio: RatioLevel | None = None
    """A probability ratio per token or per row; the run's (``ratio=``) if None."""

    @property
    def inputs(self) -> frozenset[str]:
        """The old log-probabilities, the reference's with a penalty, and a teacher's where there is one."""
        others = {"ref_logprobs"} if self.kl_coef else set()
        return frozenset({"old_logprobs", *others, *({"teacher_logprobs"} if self.taught_behind else ())})

    @property
    def needs_advantages(self) -> bool:
        """Without a penalty, rows without advantages have no gradient."""
        return not self.kl_coef

    def configured(self, **settings: Any) -> ClippedPolicyGradient:
        """Takes the run's settings where its own are open."""
        return replace(self, **{name: value for name, value in settings.items() if getattr(self, name) is None})

    def __call__(self, inputs: LossInputs) -> TokenLoss:
        """See :func:`clipped_policy_gradient`; logs ``kl`` and ``clip_fraction``."""
        values, clipped = clipped_policy_gradient(
            inputs.logprobs,
            inputs.advantages,
            old_logprobs=inputs.old_logprobs,
            sampling_ratio=inputs.optional.get("sampling_ratio"),
            clip=0.2 if self.clip is None else self.clip,
            clip_high=self.clip_high,
            sequences=inputs.mask if self.ratio == "sequence" else None,
        )
        kl = inputs.logprobs.new_zeros(inputs.logprobs.shape)
        if self.kl_coef:
            kl = k3(inputs.logprobs, inputs["ref_logprobs"])
            values = values + self.kl_coef * kl
        return TokenLoss(values, {"kl": kl.detach(), "clip_fraction": clipped})


def clipped_policy_gradient(
    logprobs: torch.Tensor,
    advantages: torch.Tensor,
    *,
    old_logprobs: torch.Tensor,
    sampling_ratio: torch.Tensor | None = None,
    clip: float = 0.2,
    clip_high: float | None = None,
    sequences: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Computes ``-min(r A, clip(r, 1 - clip, 1 + clip_high) A)`` per token, with ``r = exp(logprobs - old_logprobs)``.

    An upper width of its own is DAPO's (arXiv:2503.14476), a ratio per sequence GSPO's (arXiv:2507.18071): of the mean
    log-ratio over the tokens where ``sequences`` is 1. All tensors are (rows, tokens); ``old_logprobs`` carry no
    gradient, ``sampling_ratio`` corrects for a difference between generating and training engine. Gives the values,
    and 1 where the ratio was clipped.
    """
    log_ratio, high = logprobs - old_logprobs, clip if clip_high is None else clip_high
    if sequences is not None:
        log_ratio = (log_ratio * sequences).sum(-1, keepdim=True) / sequences.sum(-1, keepdim=True).clamp(min=1)
        log_ratio = log_ratio.expand_as(logprobs)
    ratio = log_ratio.exp()
    gain = advantages.to(logprobs.dtype)
    values = -(ratio * gain).minimum(ratio.clamp(1 - clip, 1 + high) * gain)
    if sampling_ratio is not None:
        values = values * sampling_ratio
    clipped = ((ratio < 1 - clip) & (gain < 0)) | ((ratio > 1 + high) & (gain > 0))
    return values, clipped


def k3(logprobs: torch.Tensor, ref_logprobs: torch.Tensor) -> torch.Tensor:
    """Schulman's estimate of KL(policy, reference) per token: ``exp(d) - d - 1`` with ``d = ref - log p``."""
    difference = ref_logprobs - logprobs
    return difference.exp() - difference - 1


@dataclass(frozen=True)
class TeacherSizedPolicyGradient(ClippedPolicyGradient):
    """RLSD (arXiv 2604.03128): :func:`trainers.losses.rlsd_weight` times the advantage in the clipped objective."""

    taught_behind: ClassVar[View | None] = "with_skill"
    start: Fraction = 0.5
    """Weight of the teacher in the first update."""
    mixing_steps: Count = 100
    """Updates after which the teacher has no weight."""
    width: Fraction = 0.2
    """Half width of the range of the teacher's factor."""
    teacher_weights: Weights = "policy"

    def __call__(self, inputs: LossInputs) -> TokenLoss:
        """As the clipped objective; logs ``teacher_weight`` too, and by how much it changes an advantage."""
        lam = rlsd_mixing(inputs.update - 1, self.start, self.mixing_steps)
        # The teacher has the weights of now; against older ones a later minibatch would take the steps since for a gap.
        weight = rlsd_weight(inputs.logprobs, inputs["teacher_logprobs"], inputs.advantages, lam, self.width)
        result = super().__call__(inputs.with_(advantages=inputs.advantages * weight))
        part = (inputs.advantages * (weight - 1)).abs()
        return replace(result, log={**result.log, "teacher_weight": weight, "teacher_part": part})


def rlsd_weight(
    student: torch.Tensor, teacher: torch.Tensor, advantages: torch.Tensor, lam: float, clip: float = 0.2
) -> torch.Tensor:
    """``(1 - lam) + lam clip(exp(sign(A) (log p_T - log p_S)), 1 - clip, 1 + clip)``, the factor on A per token.

    From log-probabilities of the sampled tokens without the skill and with it, of any shape, to which the advantages
    broadcast; only their sign counts, and 0 gives the factor 1. The result carries no gradient. A ConfigError if
    ``lam`` lies outside [0, 1] (see :func:`rlsd_mixing`), or the shapes do not fit.
    """
    if not 0.0 <= lam <= 1.0:
        raise ConfigError(f"lam lies in [0, 1], got {lam}")
    require_equal_shapes(student=student, teacher=teacher)
    import torch

    try:
        gains = torch.as_tensor(advantages, device=student.device).expand_as(student)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ConfigError(f"advantages must broadcast to the shape {tuple(student.shape)} ({error})") from error
    size = (gains.sign() * (teacher - student)).exp().clamp(1 - clip, 1 + clip)
    return ((1 - lam) + lam * size).detach()


def rlsd_mixing(update: int, start: float = 0.5, steps: int = 100) -> float:
    """``lam`` of an update: from ``start`` linearly to 0 over ``steps`` updates, of which ``update`` are done."""
    return start * max(0.0, 1.0 - update / steps)


@dataclass(frozen=True)
class HindsightPolicyGradient(ClippedPolicyGradient):
    """OPID (arXiv 2606.26790): ``A + w sg(log p_T - log p_S)`` per token, inside the clipped objective.

    The teacher is the same policy with a skill in its prompt that was written from the finished episode: rows of the
    update's rollouts that bring this text take the place of those without.
    """

    taught_behind: ClassVar[View | None] = "without_skill"
    acts_on = "rows"
    teacher_weight: NotNegative = 0.001
    """w, the teacher's share in the advantage."""
    teacher_weights: Weights = "policy"
    needs_advantages = False
    """The teacher's part is there where all returns of a group are equal, too."""

    def __call__(self, inputs: LossInputs) -> TokenLoss:
        """As the clipped objective; logs ``teacher_gap`` too, and by how much it changes an advantage."""
        # Not the old ones, as in RLSD above.
        gap = (inputs["teacher_logprobs"] - inputs.logprobs).detach()
        part = self.teacher_weight * gap
        result = super().__call__(inputs.with_(advantages=inputs.advantages + part))
        return replace(result, log={**result.log, "teacher_gap": gap, "teacher_part": part.abs()})


@dataclass(frozen=True)
class PrivilegedTeacher(HindsightPolicyGradient):
    """pi-Distill's teacher (arXiv 2602.04942): ``E_T[R] - b KL(T || sg S)``.

    The policy with the skill plays. What is subtracted from a token's advantage is ``b sg(log p_T - log p_S)``: here
    the prompt without the skill is the one that scores, and ``teacher_gap`` is ``log p_S - log p_T``.
    """

    acts_on = "all"
    coefficient: NotNegative = 0.5
    """The formula's alpha."""
    teacher_weight: NotNegative = 0.25
    """The formula's b, which ``divergence`` is in the student's part."""


@dataclass(frozen=True)
class PrivilegedStudent(ClippedPolicyGradient):
    """pi-Distill's student (arXiv 2602.04942): ``E_T[S / sg(T) R] - b KL(sg T || S)``, clipped as GRPO's ratio is.

    On rows of the teacher's rollouts behind the prompt without the skill.
    """

    name: ClassVar[str] = "student"
    acts_on = "rows"
    coefficient: NotNegative = 0.5
    """The formula's 1 - alpha."""
    divergence: NotNegative = 0.25
    """The formula's b, which ``teacher_weight`` is in the teacher's part."""
    cap: Positive = 10.0
    """Where the ratio is truncated. It does not begin at 1 as GRPO's does, and clipping leaves it open above where the
    advantage is negative: one token could outweigh an update."""

    @property
    def needs_advantages(self) -> bool:
        """Divergence and penalty are there where all returns of a group are equal, too."""
        return not (self.divergence or self.kl_coef)

    def __call__(self, inputs: LossInputs) -> TokenLoss:
        """The loss; logs ``hint_reliance``, the mean of ``log p_T - log p_S``, and ``student_clipped``."""
        sampled = inputs["sampling_logprobs"]
        lowest = inputs.logprobs.detach() - math.log(self.cap)
        # The ratio to who generated is the whole ratio; none is left to correct for.
        optional = {name: value for name, value in inputs.optional.items() if name != "sampling_ratio"}
        result = super().__call__(inputs.with_(optional={**optional, "old_logprobs": sampled.maximum(lowest)}))
        gap = sampled - inputs.logprobs
        log = {"hint_reliance": gap.detach(), "student_clipped": result.log["clip_fraction"]}
        return TokenLoss(result.values + self.divergence * gap, log)


@dataclass(frozen=True)
class Value(Loss):
    """PPO's value loss (arXiv 1707.06347), :func:`clipped_value_loss`, of a linear head over the last hidden states.

    The scheme that asks for ``values`` gives the targets ``value_targets`` and the values before the update,
    ``old_values``.
    """

    name: ClassVar[str] = "value"
    targets: ClassVar[frozenset[str]] = frozenset({"value_targets", "old_values"})
    coefficient: NotNegative = 0.5
    value_clip: NotNegative = 0.5
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
    regularises: ClassVar[bool] = True
    coefficient: NotNegative = 0.01
    inputs = frozenset({"logits"})

    def __call__(self, inputs: LossInputs) -> TokenLoss:
        """The negative entropy at every own token."""
        logprobs = inputs["logits"].log_softmax(-1)
        return TokenLoss((logprobs.exp() * logprobs).sum(-1))
