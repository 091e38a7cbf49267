"""Choices that settings offer and rooms carry out, and how a reply is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from trainers.base.bounds import Natural, Part, Positive, Share, check_values

__all__ = ["Aggregation", "MaskTruncated", "RatioLevel", "Returns", "Sampling", "TaskSampling", "Thoughts"]

Returns = Literal["won", "task_score", "reward"]
"""What a learner's return is: success, the environment's own score, or the sum of the rewards (shaping included)."""
RatioLevel = Literal["token", "sequence"]
"""Whether a probability ratio is a token's or a row's."""
Thoughts = Literal["template", "keep", "drop"]
"""What a growing conversation shows of earlier thoughts."""
TaskSampling = Literal["uniform", "types"]
"""How an update's tasks are drawn."""
Aggregation = Literal["trajectory", "token", "constant"]
"""What a token's value is divided by before values are added up."""
MaskTruncated = Literal["none", "context", "all"]
"""Which truncated episodes teach nothing."""


@dataclass(frozen=True)
class Sampling:
    """How the next token is drawn.

    Raises:
        ConfigError: If a number lies outside its range; greedy decoding has its own switch, no temperature of 0.
    """

    temperature: Positive = 1.0
    """Divides the logits. Log-probabilities that engines report are those of the divided logits."""
    greedy: bool = False
    """Take the most probable token instead of drawing one; the seeds are then not used."""
    top_p: Part = 1.0
    """Draw from the most probable tokens that together reach this share; 1 for all. The log-probabilities of an engine
    with exact ones stay those of the whole distribution."""
    top_k: Natural = 0
    """Draw from so many of the most probable tokens; 0 for all."""
    min_p: Share = 0.0
    """Draw from tokens at least so probable as this share of the most probable one; 0 for all."""

    def __post_init__(self) -> None:
        check_values(self)

    @property
    def truncates(self) -> bool:
        """Whether some tokens are never drawn."""
        return self.top_p < 1 or self.top_k > 0 or self.min_p > 0
