"""What the learner asks of whoever owns the weights and the optimiser."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Literal, Protocol, TypeVar

import torch

from trainers.engines.types import Engine
from trainers.rollout.chat_tokens import ChatTokens
from trainers.rollout.collate import Tokens

__all__ = ["Backend", "TrainingBackend", "Weights"]

T = TypeVar("T")
Weights = Literal["policy", "reference", "average"]
"""The trained weights, those that training began with, or a moving average of the trained ones."""


class Backend(Protocol):
    """Processes, devices and forward passes."""

    @property
    def device(self) -> torch.device:
        """Where tensors belong."""

    @property
    def process_index(self) -> int:
        """Which process this is."""

    @property
    def num_processes(self) -> int:
        """How many processes train together."""

    def gather(self, objects: list[T]) -> list[T]:
        """All processes' objects, process by process, on every process."""

    def add_up(self, tensor: torch.Tensor) -> torch.Tensor:
        """The sum over processes, on every process."""

    def score(self, tokens: Tokens, wants: Collection[str], weights: Weights = "policy") -> dict[str, torch.Tensor]:
        """One forward pass, with gradient where the caller allows it.

        Args:
            tokens: Rows of tokens.
            wants: ``logprobs``, ``entropies`` or the name of a head, each (rows, tokens) and 0 outside the own tokens;
                ``logits``: (own tokens row by row, vocabulary), divided by the temperature.
            weights: Whose.
        """

    def gradient_norm(self, losses: Iterable[torch.Tensor]) -> float:
        """Norm of the gradient of some losses' sum with respect to the trained weights, which stay as they are."""


class TrainingBackend(Backend, Protocol):
    """A backend as a run sees it: it drives the learner and keeps the weights."""

    @property
    def is_main(self) -> bool:
        """Whether this process writes files."""

    def engine(self, chat: ChatTokens) -> Engine:
        """The engine that generates with the trained weights."""

    def fit(self, checkpoint: Path | None) -> None:
        """Trains to the end, or until the learner is asked to stop; from a checkpoint if one is given.

        Calls :meth:`Learner.begin` once the weights are ready.
        """

    def restore(self, checkpoint: Path) -> None:
        """Loads a checkpoint's weights alone."""

    def save_policy(self, path: Path) -> None:
        """Writes the trained policy as a transformers checkpoint."""
