"""What one run of one method under the protocol came to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from typing import Any

from skillc_gym.errors import ConfigError, TranscriptError


@dataclass(frozen=True)
class TaskOutcome:
    """One held-out task of the panel, in both conditions."""

    task_id: str
    task_type: str
    won_with: bool
    won_without: bool
    score_with: float
    score_without: float


@dataclass(frozen=True)
class CurvePoint:
    """A validation during training.

    Attributes:
        tokens: Generated so far.
        without: Success without the skill.
        with_skill: Success with it.
        update: Updates done.
        env_steps: Environment steps so far.
        won_without: The outcome of every task of the validation panel, in its order: "1" where it was solved.
        won_with: The same with the skill.
    """

    tokens: int
    without: float
    with_skill: float
    update: int = 0
    env_steps: int = 0
    won_without: str = ""
    won_with: str = ""


@dataclass(frozen=True)
class Usage:
    """What a run cost; seconds per update are the median, validation apart, ``seconds`` are all, validations too."""

    tokens_generated: int = 0
    prompt_tokens: int = 0
    env_steps: int = 0
    updates: int = 0
    seconds_per_update: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True)
class CellResult:
    """A run of a method with one seed from one starting point; without training, the starting point itself.

    Attributes:
        start: Name of the starting point.
        method: Name of the method.
        seed: The run's seed.
        panel_sha256: Hash of the panel; the same in every cell of a table.
        outcomes: After training, one per task of the panel.
        curve: Validations in the order of training, the one before the first update included.
        usage: What the run cost.
        versions: What computed it, the revision included.
        acted: What the method's own parts did (:func:`trainers.training.what_acted`), and whether it ``withdraws``
            skills; empty in older records.
        actions: Shares of well-formed replies and of admissible commands on the panel, by condition
            (:meth:`PairedReport.actions`); empty in older records.
        started: When the run first began, in UTC; "" in older records.
        run_file: The study's file then, its hash and the commit that git has it of; empty without one.
    """

    start: str
    method: str
    seed: int
    panel_sha256: str
    outcomes: tuple[TaskOutcome, ...]
    curve: tuple[CurvePoint, ...] = ()
    usage: Usage = field(default_factory=Usage)
    versions: Mapping[str, Any] = field(default_factory=dict)
    acted: Mapping[str, Any] = field(default_factory=dict)
    actions: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)
    started: str = ""
    run_file: Mapping[str, Any] = field(default_factory=dict)

    @property
    def place(self) -> tuple[str, str, int]:
        """What a record finds it by."""
        return self.start, self.method, self.seed

    @property
    def without(self) -> float:
        """Success without the skill after training."""
        return sum(outcome.won_without for outcome in self.outcomes) / len(self.outcomes)

    @property
    def with_skill(self) -> float:
        """Success with the skill after training."""
        return sum(outcome.won_with for outcome in self.outcomes) / len(self.outcomes)

    def to_json(self) -> dict[str, Any]:
        """JSON-able values; :meth:`from_json` gives an equal result.

        Outcomes are columns over ``panel`` (task and type), one character a task; scores stand there where they say
        more than success.
        """
        return {
            **{name: getattr(self, name) for name in ("start", "method", "seed", "panel_sha256")},
            "panel": [[outcome.task_id, outcome.task_type] for outcome in self.outcomes],
            "outcomes": _columns(self.outcomes),
            "curve": [asdict(point) for point in self.curve],
            "usage": asdict(self.usage),
            "versions": dict(self.versions),
            "acted": dict(self.acted),
            "actions": dict(self.actions),
            "started": self.started,
            "run_file": dict(self.run_file),
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> CellResult:
        """Rebuilds a result; a TranscriptError where a field is missing or unknown."""
        try:
            # Older cells have "skills" too, what a memory said of itself.
            fields = {key: value for key, value in values.items() if key not in ("panel", "skills")}
            parts = {
                "outcomes": _outcomes(values["panel"], values["outcomes"]),
                "curve": tuple(CurvePoint(**entry) for entry in values["curve"]),
                "usage": Usage(**values["usage"]),
            }
            return cls(**{**fields, **parts})
        except (KeyError, TypeError, ValueError) as error:
            raise TranscriptError(f"A cell of a comparison was written by another version: {error}") from error


def _columns(outcomes: Sequence[TaskOutcome]) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for arm in ("without", "with"):
        won = [getattr(outcome, f"won_{arm}") for outcome in outcomes]
        scores = [getattr(outcome, f"score_{arm}") for outcome in outcomes]
        columns[f"won_{arm}"] = "".join("01"[int(each)] for each in won)
        columns[f"score_{arm}"] = None if scores == [float(each) for each in won] else scores
    return columns


def _outcomes(panel: Sequence[Sequence[str]], columns: Mapping[str, Any]) -> tuple[TaskOutcome, ...]:
    won = {arm: [mark == "1" for mark in columns[f"won_{arm}"]] for arm in ("with", "without")}
    scores = {arm: columns[f"score_{arm}"] or [float(each) for each in won[arm]] for arm in won}
    rows = zip(panel, won["with"], won["without"], scores["with"], scores["without"], strict=True)
    return tuple(TaskOutcome(task, kind, *rest) for (task, kind), *rest in rows)


def area_under_curve(curve: Sequence[CurvePoint], budget: int) -> float:
    """Mean skill-free success over the budget of generated tokens: the trapezoid rule, cut at the budget.

    A run that ends before the budget keeps its last success.
    """
    return sum(weight * point.without for weight, point in zip(area_weights(curve, budget), curve, strict=True))


def area_weights(curve: Sequence[CurvePoint], budget: int) -> list[float]:
    """The share that every validation has in the area under the curve; they sum to 1."""
    if not curve or budget <= 0:
        raise ConfigError(f"An area needs validations and a positive budget, got {len(curve)} and {budget}")
    at = [point.tokens for point in curve]
    weights = [0.0] * len(curve)
    for i, (first, second) in enumerate(pairwise(at)):
        length = min(second, budget) - first
        if length > 0:
            # The line is cut inside the interval: its end leans on the second point by this share alone.
            share = length / (second - first)
            weights[i] += length * (2 - share) / 2
            weights[i + 1] += length * share / 2
    weights[-1] += max(0, budget - at[-1])
    whole = budget - min(at[0], budget - 1)
    return [weight / whole for weight in weights]


def by_env_steps(curve: Sequence[CurvePoint]) -> list[CurvePoint]:
    """The same validations over environment steps: these stand in the place of tokens."""
    return [replace(point, tokens=point.env_steps) for point in curve]
