"""What a loss is: options, named tensors in, one value per token out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from skillc_gym.errors import ConfigError
from trainers.advantages import FloatArray, RolloutBatch
from trainers.base import Options

if TYPE_CHECKING:
    import torch


def require_equal_shapes(**tensors: Any) -> None:
    """Checks (ConfigError) a formula's arguments by name: broadcasting would hide mistakes in plausible numbers."""
    import torch

    for name, value in tensors.items():
        if not isinstance(value, torch.Tensor):
            raise ConfigError(f"{name} must be a torch.Tensor, got a {type(value).__name__}; torch.as_tensor makes one")
    if len({value.shape for value in tensors.values()}) > 1:
        found = ", ".join(f"{name} {tuple(value.shape)}" for name, value in tensors.items())
        raise ConfigError(f"The tensors must have equal shapes, got {found}")


View = Literal["with_skill", "without_skill"]
Weights = Literal["policy", "average", "reference"]
"""Of the live policy, a moving average of it, or the policy that training began with."""
Head = Callable[[int], "torch.nn.Module"]
"""Makes a module that maps hidden states of a given width to one number."""


@dataclass(frozen=True)
class Teacher:
    """Who scores a row's own tokens a second time, and behind which prompt."""

    prompt: View = "with_skill"
    """The row's prompt rendered with the skill of its task's type or without any; a row that brings a teacher text of
    its own is rendered with that."""
    weights: Weights = "policy"
    """Whose weights."""
    decay: float = 0.99
    """Weight of the past in the moving average, per update."""


@dataclass(frozen=True)
class LossInputs:
    """What a loss may look at. Shapes are (rows, tokens) unless said otherwise; 0 outside the own tokens."""

    logprobs: torch.Tensor
    """Of the tokens under the trained weights, with gradient."""
    mask: torch.Tensor
    """1 for the model's own tokens."""
    advantages: torch.Tensor
    """One per token."""
    optional: Mapping[str, torch.Tensor] = field(default_factory=dict)
    """What was asked for by :attr:`Loss.inputs`: ``old_logprobs``, ``ref_logprobs``, ``teacher_logprobs``, ``logits``
    and ``teacher_logits`` (own tokens row by row, vocabulary), a head's figures under its name, a row's own targets
    under theirs. ``sampling_ratio`` is there where the engine that generated is not exact."""
    update: int = 1
    """Number of the update, from 1."""

    def __getitem__(self, name: str) -> torch.Tensor:
        """An input that the loss has asked for."""
        if name not in self.optional:
            raise ConfigError(f"The loss reads {name!r} and was given {sorted(self.optional)}; name it in its inputs")
        return self.optional[name]

    @property
    def old_logprobs(self) -> torch.Tensor:
        """Under the weights that generated: the trained ones, without gradient, while these have not moved."""
        return self.optional.get("old_logprobs", self.logprobs.detach())

    def with_(self, **changes: Any) -> LossInputs:
        """A copy with some fields changed."""
        return replace(self, **changes)


@dataclass(frozen=True)
class TokenLoss:
    """Values to minimise, (rows, tokens), of whole distributions one per own token; figures whose means are logged."""

    values: torch.Tensor
    log: Mapping[str, torch.Tensor] = field(default_factory=dict)


class Loss(Options):
    """Base of a loss: a frozen dataclass of its own options, a name among them or above them.

    Rows say by ``name`` which losses act on them; those of the update's own rollouts ask :meth:`on_rollouts`.

    Attributes:
        coefficient: Weight in the sum of losses.
        teacher_weights: Whose weights teach, where there is a teacher.
    """

    name: ClassVar[str]
    targets: ClassVar[frozenset[str]] = frozenset()
    """Figures that it reads and a credit-assignment scheme must give."""
    taught_behind: ClassVar[View | None] = None
    """The prompt of its teacher, if it has one; the weights are the option ``teacher_weights``."""
    reads_advantages: ClassVar[bool] = False
    """Whether it reads ``inputs.advantages``."""
    regularises: ClassVar[bool] = False
    """Whether it only holds the policy back, so that it may miss some groups."""
    acts_on: ClassVar[str] = "all"
    """On which of the update's own rollouts it acts: "all", "skill_free", or "rows": row makers bring its rows."""
    coefficient: float

    @property
    def inputs(self) -> frozenset[str]:
        """The tensors it needs beside log-probabilities, see :class:`LossInputs`."""
        return frozenset()

    @property
    def teacher(self) -> Teacher | None:
        """Who scores the tokens for ``teacher_logprobs`` and ``teacher_logits``."""
        return Teacher(self.taught_behind, getattr(self, "teacher_weights", "policy")) if self.taught_behind else None

    @property
    def heads(self) -> Mapping[str, Head]:
        """Modules of its own over the last hidden states, by the name of the figure they give."""
        return {}

    @property
    def needs_advantages(self) -> bool:
        """Whether a row without advantages has no gradient in it, so that it may be left out."""
        return self.reads_advantages

    def on_rollouts(self, batch: RolloutBatch) -> FloatArray:
        """By how much it acts on each of the update's own rollouts, 0 for not at all; float64[N]."""
        if self.acts_on == "skill_free":
            return (~batch.condition).astype(np.float64)
        return np.full(len(batch.task), float(self.acts_on == "all"))

    def configured(self, **settings: Any) -> Loss:
        """The loss with a run's ``clip``, ``kl_coef``, ``clip_high`` and ``ratio`` where it leaves them open."""
        return self

    def __call__(self, inputs: LossInputs) -> TokenLoss:
        """Computes the loss of a micro-batch token by token, before any averaging and without the coefficient."""
        raise NotImplementedError
