"""From the cells of a comparison to its table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import Any

from skillc_gym.errors import ConfigError
from skillc_lab.studies.result import CellResult, by_env_steps, tokens_to_reach
from skillc_lab.studies.significance import area, area_difference, change, difference, success
from trainers.stats import Difference, Interval, MeanEstimate, Verdict, holm

__all__ = ["Cost", "CurveSummary", "MethodRow", "Versus", "method_rows", "table_text"]

_TARGET = 0.6


@dataclass(frozen=True)
class CurveSummary:
    """Skill-free success on the way.

    Attributes:
        area: Mean over the budget of generated tokens, over seeds and tasks.
        area_by_steps: Mean over as many environment steps as every run of the table took, over seeds and tasks.
        tokens_to_target: Median tokens until a validation first showed 60 %; None if half of the seeds never got there.
    """

    area: MeanEstimate
    area_by_steps: MeanEstimate
    tokens_to_target: int | None


@dataclass(frozen=True)
class Cost:
    """What a method costs: means over its seeds, prompt tokens per update, seconds per update their median."""

    tokens: float
    prompt_tokens: float
    env_steps: float
    seconds_per_update: float

    @classmethod
    def of(cls, cells: Sequence[CellResult]) -> Cost:
        """The cost of some runs."""
        used = [cell.usage for cell in cells]
        return cls(
            tokens=fmean(each.tokens_generated for each in used),
            prompt_tokens=fmean(each.prompt_tokens / max(each.updates, 1) for each in used),
            env_steps=fmean(each.env_steps for each in used),
            seconds_per_update=median(each.seconds_per_update for each in used),
        )


@dataclass(frozen=True)
class Versus:
    """One measure of a method beside the baseline's, and what may be said after Holm's step over the methods."""

    difference: Difference
    adjusted_p: float
    verdict: Verdict

    def to_json(self) -> dict[str, Any]:
        """JSON-able values."""
        return {**self.difference.to_json(), "adjusted_p": self.adjusted_p}


@dataclass(frozen=True)
class MethodRow:
    """A method over its seeds.

    Attributes:
        method: Name of the method.
        seeds: Its seeds.
        without: Skill-free success after training, over seeds and tasks.
        with_skill: Success with the skill after training, over seeds and tasks.
        curve: Success on the way.
        cost: What it took.
        changes: Success after training minus that of the starting point, by condition ("without", "with"); empty where
            the starting point was not played.
        against: Skill-free success beside the baseline's; None for the baseline itself.
        area_against: The area over generated tokens beside the baseline's.
    """

    method: str
    seeds: tuple[int, ...]
    without: MeanEstimate
    with_skill: MeanEstimate
    curve: CurveSummary
    cost: Cost
    changes: Mapping[str, Difference]
    against: Versus | None
    area_against: Versus | None = None

    def to_json(self) -> dict[str, Any]:
        """JSON-able values."""
        beside, area_beside = self.against, self.area_against
        return {
            "method": self.method,
            "seeds": list(self.seeds),
            "without": _estimate(self.without),
            "with_skill": _estimate(self.with_skill),
            "area": _estimate(self.curve.area),
            "area_by_env_steps": _estimate(self.curve.area_by_steps),
            "tokens_to_60": self.curve.tokens_to_target,
            "tokens": self.cost.tokens,
            "prompt_tokens_per_update": self.cost.prompt_tokens,
            "env_steps": self.cost.env_steps,
            "seconds_per_update": self.cost.seconds_per_update,
            "changes": {arm: found.to_json() for arm, found in self.changes.items()},
            "difference": beside and beside.to_json(),
            "verdict": beside and beside.verdict,
            "area_difference": area_beside and area_beside.to_json(),
            "area_verdict": area_beside and area_beside.verdict,
        }


def method_rows(
    cells: Sequence[CellResult], baseline: str, budget: int, before: CellResult | None = None
) -> list[MethodRow]:
    """One row per method, in the order in which the methods first appear.

    Args:
        cells: All trained cells of a comparison from one starting point.
        baseline: The method that the others are compared with.
        budget: Generated tokens over which the area is taken.
        before: The starting point itself.

    Raises:
        ConfigError: There are no cells of the baseline, or the panels differ.
    """
    by_method: dict[str, list[CellResult]] = {}
    for cell in cells:
        by_method.setdefault(cell.method, []).append(cell)
    if baseline not in by_method:
        raise ConfigError(f"The baseline {baseline!r} has no cells; there are {', '.join(by_method) or 'none at all'}")
    base = by_method[baseline]
    others = {name: own for name, own in by_method.items() if name != baseline}
    against = _beside({name: difference(own, base) for name, own in others.items()}, len(base))
    areas = _beside({name: area_difference(own, base, budget) for name, own in others.items()}, len(base))
    steps = max(1, min(cell.usage.env_steps for cell in cells))
    return [
        MethodRow(
            method=name,
            seeds=tuple(cell.seed for cell in own),
            without=success(own, skill=False),
            with_skill=success(own, skill=True),
            curve=_curve(own, budget, steps),
            cost=Cost.of(own),
            changes={arm: change(own, before, skill=arm == "with") for arm in ("without", "with")} if before else {},
            against=against.get(name),
            area_against=areas.get(name),
        )
        for name, own in by_method.items()
    ]


def table_text(rows: Sequence[MethodRow], before: CellResult | None = None) -> str:
    """The table in Markdown: percent and points with 95 % intervals over seeds and tasks."""
    head = (
        "| method | seeds | area | against the baseline | without skill | against the baseline | with skill | "
        "with, change | area by steps | tokens to 60 % | tokens | environment steps | prompt tokens per update | "
        "s per update |"
    )
    lines = [head, "|---" * 14 + "|"]
    if before is not None:
        rates = [f"{100 * rate:.1f}" for rate in (before.without, before.with_skill)]
        start = ["(starting point)", "", "", "", rates[0], "", rates[1], *[""] * 7]
        lines.append(f"| {' | '.join(start)} |")
    return "\n".join([*lines, *(_line(row) for row in rows)])


def _beside(differences: Mapping[str, Difference], seeds: int) -> dict[str, Versus]:
    """Holm's step over the methods, for differences and for equivalences.

    One seed stands for no method, and a method that lacks some of the baseline's seeds would be compared with another
    baseline than the others are: neither gets a verdict, nor a share in the adjustment.
    """
    whole = {name: found for name, found in differences.items() if found.seeds == seeds > 1}
    differ = holm({name: found.p_value for name, found in whole.items()})
    equal = holm({name: found.equivalence_p() for name, found in whole.items()})
    return {
        name: Versus(found, differ.get(name, 1.0), _verdict(found, differ.get(name, 1.0), equal.get(name, 1.0), seeds))
        for name, found in differences.items()
    }


def _verdict(found: Difference, adjusted_p: float, equivalence_p: float, seeds: int) -> Verdict:
    return "fewer seeds" if 1 < found.seeds < seeds else found.verdict(adjusted_p, equivalence_p)


def _curve(cells: Sequence[CellResult], budget: int, steps: int) -> CurveSummary:
    reached = [tokens_to_reach(cell.curve, _TARGET) for cell in cells]
    middle = median(math.inf if tokens is None else tokens for tokens in reached)
    over_steps = [replace(cell, curve=tuple(by_env_steps(cell.curve))) for cell in cells]
    return CurveSummary(
        area=area(cells, budget),
        area_by_steps=area(over_steps, steps),
        tokens_to_target=int(middle) if math.isfinite(middle) else None,
    )


def _line(row: MethodRow) -> str:
    reached = row.curve.tokens_to_target
    cells = (
        row.method,
        str(len(row.seeds)),
        _rate(row.curve.area),
        _said(row.area_against),
        _rate(row.without),
        _said(row.against),
        _rate(row.with_skill),
        _difference(row.changes["with"]) if row.changes else "",
        _rate(row.curve.area_by_steps),
        "never" if reached is None else f"{reached:,}",
        f"{row.cost.tokens:,.0f}",
        f"{row.cost.env_steps:,.0f}",
        f"{row.cost.prompt_tokens:,.0f}",
        f"{row.cost.seconds_per_update:.2f}",
    )
    return f"| {' | '.join(cells)} |"


def _said(beside: Versus | None) -> str:
    return f"{_difference(beside.difference)}: {beside.verdict}" if beside else "(baseline)"


def _rate(estimate: MeanEstimate) -> str:
    own = estimate.interval
    shown = f" [{100 * max(own.low, 0.0):.0f}, {100 * min(own.high, 1.0):.0f}]" if own else ""
    return f"{100 * estimate.mean:.1f}{shown}"


def _difference(found: Difference) -> str:
    own = found.interval
    shown = f" [{100 * own.low:+.0f}, {100 * own.high:+.0f}]" if own else ""
    return f"{100 * found.mean:+.1f}{shown}"


def _estimate(estimate: MeanEstimate) -> Mapping[str, Any]:
    return {"mean": estimate.mean, "interval": _pair(estimate.interval), "n": estimate.n}


def _pair(interval: Interval | None) -> list[float] | None:
    return None if interval is None else interval.to_json()
