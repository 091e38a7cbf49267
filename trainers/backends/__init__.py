"""Who owns the weights and the optimiser: one folder per training library."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainers.models import BACKENDS

if TYPE_CHECKING:
    from trainers.config import TrainConfig
    from trainers.learner import Backend, Objective
    from trainers.tracking import Progress

__all__ = ["BACKENDS", "BackendSpec"]


@dataclass(frozen=True)
class BackendSpec:
    """One backend, by the ``name`` that ``backend=`` takes.

    ``require`` raises a MissingExtraError where something is not installed; ``make`` loads the model, from a run's
    settings, its objective, a tokenizer and who is told what happens; ``chat_template`` gives a tokenizer of a known
    model family a template that never rewrites earlier turns.
    """

    name: str
    require: Callable[[], None]
    make: Callable[[TrainConfig, Objective, Any, Progress], Backend]
    chat_template: Callable[[Any], None] | None = None
