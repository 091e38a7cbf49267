"""What a paired evaluation found: outcomes per task, rates with intervals, and how they change between two of them."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from skillc_gym.errors import ConfigError
from skillc_gym.panels import panel_hash
from trainers.evaluation.stats import Interval, paired_difference, wilson

__all__ = ["Change", "PairedCounts", "PairedOutcome", "PairedReport", "compare_reports"]


@dataclass(frozen=True)
class PairedOutcome:
    """What became of one task in both conditions.

    Attributes:
        task_id: The task.
        task_type: Its type.
        won_with: Whether it was solved with the skill.
        won_without: Whether it was solved without.
        score_with: Raw score with the skill.
        score_without: Raw score without.
        steps_with: Steps taken with the skill.
        steps_without: Steps taken without.
    """

    task_id: str
    task_type: str
    won_with: bool
    won_without: bool
    score_with: float
    score_without: float
    steps_with: int
    steps_without: int


@dataclass(frozen=True)
class PairedCounts:
    """Tasks counted by their pair of outcomes, and the rates that follow, with 95 % intervals.

    Attributes:
        both: Solved with and without the skill.
        only_with: Solved only with it.
        only_without: Solved only without it.
        neither: Solved in neither condition.
    """

    both: int
    only_with: int
    only_without: int
    neither: int

    @classmethod
    def of(cls, outcomes: Iterable[PairedOutcome]) -> PairedCounts:
        """Counts outcomes."""
        found = Counter((o.won_with, o.won_without) for o in outcomes)
        return cls(found[True, True], found[True, False], found[False, True], found[False, False])

    @property
    def n(self) -> int:
        """Number of tasks."""
        return self.both + self.only_with + self.only_without + self.neither

    @property
    def sr_with(self) -> float:
        """Success rate with the skill."""
        return (self.both + self.only_with) / self.n

    @property
    def sr_without(self) -> float:
        """Success rate without the skill."""
        return (self.both + self.only_without) / self.n

    @property
    def gap(self) -> float:
        """``sr_with - sr_without``."""
        return (self.only_with - self.only_without) / self.n

    @property
    def sr_with_interval(self) -> Interval:
        """Wilson interval of ``sr_with``."""
        return wilson(self.both + self.only_with, self.n)

    @property
    def sr_without_interval(self) -> Interval:
        """Wilson interval of ``sr_without``."""
        return wilson(self.both + self.only_without, self.n)

    @property
    def gap_interval(self) -> Interval:
        """Newcombe's paired interval of the gap."""
        return paired_difference(self.both, self.only_with, self.only_without, self.neither)

    @property
    def gap_standard_error(self) -> float:
        """Standard error of the gap, with half a pair added to each disagreement so that it is never 0."""
        more, less = self.only_with + 0.5, self.only_without + 0.5
        n = self.n + 1
        return math.sqrt(((more + less) / n - ((more - less) / n) ** 2) / n)

    def to_json(self) -> dict[str, Any]:
        """Counts, rates and intervals as JSON-able values."""
        rates = {name: getattr(self, name) for name in ("sr_with", "sr_without", "gap")}
        intervals = {f"{name}_interval": _pair(getattr(self, f"{name}_interval")) for name in rates}
        return {"n": self.n, **asdict(self), **rates, **intervals}


@dataclass(frozen=True)
class PairedReport:
    """A paired evaluation; every rate follows from ``outcomes``.

    Attributes:
        outcomes: One per task of the panel, in its order.
        seed: Seed of the evaluation.
        sampling: How replies were sampled.
        episodes: The episodes in the order played, for transcripts; not part of the JSON.
    """

    outcomes: tuple[PairedOutcome, ...]
    seed: int
    sampling: Mapping[str, Any]
    episodes: tuple[Any, ...] = field(default=(), compare=False, repr=False)

    @cached_property
    def overall(self) -> PairedCounts:
        """All tasks together, each weighing the same."""
        return PairedCounts.of(self.outcomes)

    @cached_property
    def per_type(self) -> dict[str, PairedCounts]:
        """Each task type by itself, sorted by name."""
        kinds = sorted({outcome.task_type for outcome in self.outcomes})
        return {kind: PairedCounts.of(o for o in self.outcomes if o.task_type == kind) for kind in kinds}

    @property
    def panel_sha256(self) -> str:
        """Hash of the panel; reports are comparable task by task where it agrees."""
        return panel_hash([outcome.task_id for outcome in self.outcomes])

    @property
    def sr_with(self) -> dict[str, float]:
        """Success rate with the skill per type, as the curriculum takes it."""
        return {kind: counts.sr_with for kind, counts in self.per_type.items()}

    @property
    def sr_without(self) -> dict[str, float]:
        """Success rate without the skill per type."""
        return {kind: counts.sr_without for kind, counts in self.per_type.items()}

    @property
    def overall_with(self) -> float:
        """Success rate with the skill over the whole panel."""
        return self.overall.sr_with

    @property
    def overall_without(self) -> float:
        """Success rate without the skill over the whole panel."""
        return self.overall.sr_without

    @property
    def n(self) -> dict[str, int]:
        """Number of tasks per type."""
        return {kind: counts.n for kind, counts in self.per_type.items()}

    @property
    def gap_standard_error(self) -> dict[str, float]:
        """Standard error of the gap per type, for the curriculum's margin."""
        return {kind: counts.gap_standard_error for kind, counts in self.per_type.items()}

    def to_json(self) -> dict[str, Any]:
        """The report as JSON-able values: derived rates for readers, outcomes for :meth:`from_json`."""
        return {
            "panel_sha256": self.panel_sha256,
            "seed": self.seed,
            "sampling": dict(self.sampling),
            "overall": self.overall.to_json(),
            "per_type": {kind: counts.to_json() for kind, counts in self.per_type.items()},
            "outcomes": [asdict(outcome) for outcome in self.outcomes],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> PairedReport:
        """Reads a report back.

        Raises:
            ConfigError: It is no report, or its outcomes do not match its panel's hash.
        """
        try:
            outcomes = tuple(PairedOutcome(**outcome) for outcome in data["outcomes"])
            report = cls(outcomes, int(data["seed"]), dict(data["sampling"]))
            recorded = data["panel_sha256"]
        except (KeyError, TypeError) as error:
            raise ConfigError(
                f"This is no paired report ({error}); expected what PairedReport.to_json wrote"
            ) from error
        if report.panel_sha256 != recorded:
            raise ConfigError("The report's outcomes do not match its panel's hash; the file was changed")
        return report

    def save(self, path: str | Path) -> None:
        """Writes the report as a JSON file."""
        Path(path).write_text(json.dumps(self.to_json(), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> PairedReport:
        """Reads a report from a JSON file; errors as in :meth:`from_json`."""
        return cls.from_json(json.loads(Path(path).read_text(encoding="utf-8")))


@dataclass(frozen=True)
class Change:
    """How a success rate changed between two evaluations of the same panel.

    Attributes:
        n: Number of tasks.
        before: Rate in the first evaluation.
        after: Rate in the second.
        interval: 95 % interval of ``after - before``, pairing the tasks.
    """

    n: int
    before: float
    after: float
    interval: Interval

    @property
    def change(self) -> float:
        """``after - before``."""
        return self.after - self.before


def compare_reports(before: PairedReport, after: PairedReport, *, skill: bool) -> dict[str, Change]:
    """How success changed between two evaluations, task by task.

    Args:
        before: The earlier report.
        after: The later one.
        skill: Compare the episodes with the skill, or those without.

    Returns:
        The change of every type, and of all tasks under ``"overall"``.

    Raises:
        ConfigError: The reports are of different panels.
    """
    if before.panel_sha256 != after.panel_sha256:
        raise ConfigError("The two reports are of different panels; evaluate both on the same one")
    name = "won_with" if skill else "won_without"
    pairs = [
        (b.task_type, getattr(b, name), getattr(a, name)) for b, a in zip(before.outcomes, after.outcomes, strict=True)
    ]
    kinds = sorted({kind for kind, _, _ in pairs})
    changes = {kind: _change([(b, a) for other, b, a in pairs if other == kind]) for kind in kinds}
    return {**changes, "overall": _change([(b, a) for _, b, a in pairs])}


def _change(pairs: Sequence[tuple[bool, bool]]) -> Change:
    found, n = Counter(pairs), len(pairs)
    interval = paired_difference(found[True, True], found[False, True], found[True, False], found[False, False])
    return Change(n, sum(b for b, _ in pairs) / n, sum(a for _, a in pairs) / n, interval)


def _pair(interval: Interval) -> list[float]:
    return [interval.low, interval.high]
