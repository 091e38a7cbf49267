"""Divergences between whole next-token distributions of student and teacher."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from skillc_gym.errors import ConfigError
from trainers.losses.shapes import require_equal_shapes

if TYPE_CHECKING:
    import torch

__all__ = ["forward_kl", "generalised_jsd"]


def generalised_jsd(student_logits: torch.Tensor, teacher_logits: torch.Tensor, beta: float) -> torch.Tensor:
    """``beta KL(T || M) + (1 - beta) KL(S || M)`` with ``M = beta T + (1 - beta) S``, per position.

    At the ends it is taken to be ``KL(T || S)`` for ``beta = 0`` and ``KL(S || T)`` for ``beta = 1`` (the limits of the
    divergence divided by ``beta (1 - beta)``), as in OPSD (arXiv 2601.18734) and GKD (arXiv 2306.13649).

    Args:
        student_logits: Shape (..., vocabulary), finite; normalised here, so a restriction to the same top-k entries
            is renormalised.
        teacher_logits: The same with the skill in the prompt; carries no gradient.
        beta: Weight of the teacher in the mixture, in [0, 1].

    Returns:
        Shape (...), never negative up to rounding; a loss to be minimised, without its coefficient.

    Raises:
        ConfigError: ``beta`` lies outside [0, 1], an argument is no tensor, or the shapes differ.
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


def forward_kl(student_logits: torch.Tensor, teacher_logits: torch.Tensor) -> torch.Tensor:
    """``KL(sg T || S)`` per position: the study's variant ``forward_distillation``.

    Unlike the reverse divergence its gradient, ``S - T`` in the logits, does not vanish where the student never takes
    the step that the teacher would.

    Args:
        student_logits: Shape (..., vocabulary).
        teacher_logits: The same with the skill in the prompt; carries no gradient.

    Returns:
        Shape (...); a loss to be minimised, without its coefficient.
    """
    return generalised_jsd(student_logits, teacher_logits, 0.0)


def _kl(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """``KL(first || second)`` of log-probabilities over the last axis."""
    return (first.exp() * (first - second)).sum(-1)
