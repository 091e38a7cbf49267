"""What one run of one method under the protocol came to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import pairwise
from typing import Any

from skillc_gym.errors import ConfigError, TranscriptError

__all__ = ["CellResult", "CurvePoint", "TaskOutcome", "area_under_curve", "tokens_to_reach"]


@dataclass(frozen=True)
class TaskOutcome:
    """One task of the panel after training, in both conditions."""

    task_id: str
    task_type: str
    won_with: bool
    won_without: bool
    score_with: float
    score_without: float


@dataclass(frozen=True)
class CurvePoint:
    """A validation during training: tokens generated so far, and success without and with the skill."""

    tokens: int
    without: float
    with_skill: float


@dataclass(frozen=True)
class CellResult:
    """A run of a method with one seed.

    Attributes:
        method: Name of the method.
        seed: The run's seed.
        panel_sha256: Hash of the panel; the same in every cell of a table.
        outcomes: After training, one per task of the panel.
        curve: Validations in the order of training, the one before the first update included.
        tokens_generated: In training, all updates together.
        prompt_tokens: Tokens that were read in training, as far as the run counts them.
        env_steps: Steps of the environments in training.
        updates: Updates done.
        seconds_per_update: Median over the updates, validation apart.
        skills: For methods with a memory, what it says of itself in the last update.
    """

    method: str
    seed: int
    panel_sha256: str
    outcomes: tuple[TaskOutcome, ...]
    curve: tuple[CurvePoint, ...]
    tokens_generated: int
    prompt_tokens: int
    env_steps: int
    updates: int
    seconds_per_update: float
    skills: Mapping[str, Any]

    @property
    def without(self) -> float:
        """Success without the skill after training."""
        return sum(outcome.won_without for outcome in self.outcomes) / len(self.outcomes)

    @property
    def with_skill(self) -> float:
        """Success with the skill after training."""
        return sum(outcome.won_with for outcome in self.outcomes) / len(self.outcomes)

    def to_json(self) -> dict[str, Any]:
        """JSON-able values; :meth:`from_json` gives an equal result."""
        return {
            **{spec.name: getattr(self, spec.name) for spec in fields(self)},
            "outcomes": [asdict(outcome) for outcome in self.outcomes],
            "curve": [asdict(point) for point in self.curve],
            "skills": dict(self.skills),
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> CellResult:
        """Rebuilds a result.

        Raises:
            TranscriptError: A field is missing or unknown.
        """
        try:
            lists = {
                "outcomes": tuple(TaskOutcome(**entry) for entry in values["outcomes"]),
                "curve": tuple(CurvePoint(**entry) for entry in values["curve"]),
            }
            return cls(**{**values, **lists})
        except (KeyError, TypeError) as error:
            raise TranscriptError(f"A cell of a comparison was written by another version: {error}") from error


def area_under_curve(curve: Sequence[CurvePoint], budget: int) -> float:
    """Mean skill-free success over the budget of generated tokens: the trapezoid rule, cut at the budget.

    A run that ends before the budget keeps its last success.

    Raises:
        ConfigError: No validations, or no budget.
    """
    if not curve or budget <= 0:
        raise ConfigError(f"An area needs validations and a positive budget, got {len(curve)} and {budget}")
    points = [*curve, CurvePoint(max(budget, curve[-1].tokens), curve[-1].without, curve[-1].with_skill)]
    area = 0.0
    for first, second in pairwise(points):
        end = min(second.tokens, budget)
        if end <= first.tokens:
            continue
        share = (end - first.tokens) / (second.tokens - first.tokens)
        height = first.without + share * (second.without - first.without)
        area += (end - first.tokens) * (first.without + height) / 2
    return area / (budget - min(points[0].tokens, budget - 1))


def tokens_to_reach(curve: Sequence[CurvePoint], success: float) -> int | None:
    """Tokens generated at the first validation with at least this skill-free success; None if it never comes."""
    return next((point.tokens for point in curve if point.without >= success), None)
