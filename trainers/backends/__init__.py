"""Who owns the weights and the optimiser: one folder per training library."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainers.models import BACKENDS

if TYPE_CHECKING:
    from trainers.learner import Backend, Objective, Setup

__all__ = ["BACKENDS", "BackendSpec"]


@dataclass(frozen=True)
class BackendSpec:
    """One backend.

    Attributes:
        name: What ``backend=`` calls it.
        require: Raises MissingExtraError where something is not installed.
        make: From a run's parts, its objective and a tokenizer; loads the model.
        chat_template: Gives a tokenizer of a known model family a template that never rewrites earlier turns.
    """

    name: str
    require: Callable[[], None]
    make: Callable[[Setup, Objective, Any], Backend]
    chat_template: Callable[[Any], None] | None = None
