"""Whether skills help, hurt or do nothing: a verdict on a paired evaluation at a margin, overall and by task type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from skillc_gym.envs.registry import short_type
from skillc_lab.tables import Cell, Table, mean_tokens, points, rate
from trainers.evaluation import PairedCounts, PairedOutcome, PairedReport
from trainers.stats import Interval, detectable_difference

Verdict = Literal["pass", "neutral", "fail"]
_ERROR = 0.05


@dataclass(frozen=True)
class Effect:
    """What skills did to success on some pairs, by the smallest difference that counts and the interval's level."""

    counts: PairedCounts
    outcomes: Sequence[PairedOutcome]
    margin: float
    level: float

    @property
    def interval(self) -> Interval:
        """Of success with the skill minus without."""
        return self.counts.gap_at(self.level)

    @property
    def verdict(self) -> Verdict:
        """Pass where the whole interval lies above the margin, fail where it lies below minus the margin."""
        if self.interval.low > self.margin:
            return "pass"
        return "fail" if self.interval.high < -self.margin else "neutral"

    @property
    def decided(self) -> bool:
        """False for a neutral verdict whose interval reaches beyond the margin: more tasks may change it."""
        inside = -self.margin <= self.interval.low and self.interval.high <= self.margin
        return self.verdict != "neutral" or inside

    @property
    def detectable(self) -> float:
        """The smallest true difference that four of five such panels would set apart from none."""
        disagreeing = (self.counts.only_with + self.counts.only_without) / self.counts.pairs
        return detectable_difference(self.counts.n, disagreeing, self.level)

    @property
    def tokens(self) -> tuple[float | None, float | None]:
        """Mean tokens of an episode with the skill and without."""
        return mean_tokens(self.outcomes, True), mean_tokens(self.outcomes, False)

    def words(self) -> str:
        """The verdict in a sentence."""
        found = f"{points(self.counts.gap, self.interval)} points on {self.counts.n} tasks"
        margin = f"{100 * self.margin:g} points"
        if self.verdict == "pass":
            return f"pass: the skills help by more than {margin} ({found})"
        if self.verdict == "fail":
            return f"fail: the skills hurt by more than {margin} ({found})"
        if self.decided:
            return f"neutral: the skills do nothing as large as {margin} ({found})"
        return (
            f"neutral: undecided at {margin} ({found}); such a panel detects differences from "
            f"{100 * self.detectable:.0f} points on, so name more tasks or a larger margin"
        )

    def to_json(self) -> dict[str, Any]:
        """JSON-able values."""
        return {
            "verdict": self.verdict,
            "decided": self.decided,
            **{name: getattr(self.counts, name) for name in ("n", "sr_with", "sr_without", "gap")},
            "gap_interval": self.interval.to_json(),
            "level": self.level,
            "detectable_difference": self.detectable,
            "tokens": dict(zip(("with_skill", "without_skill"), self.tokens, strict=True)),
        }


@dataclass(frozen=True)
class SkillTest:
    """A paired evaluation, judged at the smallest difference in success that counts, such as 0.05."""

    report: PairedReport
    margin: float

    @property
    def overall(self) -> Effect:
        """All tasks."""
        return Effect(self.report.overall, self.report.outcomes, self.margin, 1 - _ERROR)

    @property
    def per_type(self) -> dict[str, Effect]:
        """Each task type; their intervals are wider, so that all of them hold at once in 95 of 100 tests."""
        found = self.report.per_type
        by_type = {kind: [each for each in self.report.outcomes if each.task_type == kind] for kind in found}
        level = 1 - _ERROR / len(found)
        return {kind: Effect(counts, by_type[kind], self.margin, level) for kind, counts in found.items()}

    def table(self) -> str:
        """The verdicts in columns of plain text."""
        heads = ["type", "tasks", "with", "without", "gap", "detectable", "tokens with", "tokens without", "verdict"]
        rows = [_row(short_type(kind), effect) for kind, effect in self.per_type.items()] + [_row("all", self.overall)]
        return Table(heads, rows, numbers=range(1, 8)).text()

    def to_json(self) -> dict[str, Any]:
        """JSON-able values."""
        types = {kind: effect.to_json() for kind, effect in self.per_type.items()}
        return {"margin": self.margin, **self.overall.to_json(), "per_type": types}


def _row(name: str, effect: Effect) -> list[str | int | Cell]:
    counts = effect.counts
    tokens = ["-" if mean is None else f"{mean:,.0f}" for mean in effect.tokens]
    mark = "" if effect.decided else " (undecided)"
    rates = [rate(counts.sr_with), rate(counts.sr_without), points(counts.gap, effect.interval)]
    return [name, counts.n, *rates, f"{100 * effect.detectable:.0f}", *tokens, effect.verdict + mark]
