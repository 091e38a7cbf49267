"""What a credit-assignment scheme is: options, a batch of trajectories in, advantages out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from trainers.advantages.batch import RolloutBatch
from trainers.advantages.grouping import FloatArray
from trainers.base import Options

__all__ = ["Advantages", "Scheme", "Values", "per_rollout"]

Values = FloatArray | Sequence[FloatArray]
"""One number per rollout, float64[N]; or per rollout one array with an entry per own token, in order."""


@dataclass(frozen=True)
class Advantages:
    """What a scheme makes of a batch.

    Attributes:
        values: The advantages.
        targets: Further figures for losses, in the same form; they reach :class:`trainers.losses.LossInputs` by name.
        parts: Shares that sum to the values, in the same form; their gradient norms can be measured apart.
        log: What the scheme has to say beside them, JSON-able.
    """

    values: Values
    targets: Mapping[str, Values] = field(default_factory=dict)
    parts: Mapping[str, Values] = field(default_factory=dict)
    log: Mapping[str, Any] = field(default_factory=dict)


class Scheme(Options):
    """Base of a credit-assignment scheme: a frozen dataclass of its own options."""

    name: ClassVar[str]
    inputs: ClassVar[frozenset[str]] = frozenset()
    """Figures per own token that it needs in ``batch.scores``: "logprobs", "ref_logprobs", or a head of a loss."""
    whole_trajectories: ClassVar[bool] = False
    """Whether it reads ``batch.trajectories``; columns are enough for the others."""

    def __call__(self, batch: RolloutBatch) -> Advantages:
        """Computes the advantages of a batch."""
        raise NotImplementedError


def per_rollout(values: Values) -> FloatArray:
    """One number per rollout: the value itself, or the mean over its tokens (0 without tokens); float64[N]."""
    if isinstance(values, np.ndarray):
        return values
    return np.asarray([float(np.mean(entry)) if len(entry) else 0.0 for entry in values], dtype=np.float64)
