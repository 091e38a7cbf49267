"""From the cells of a comparison to its table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

from skillc_gym.errors import ConfigError
from trainers.comparison.result import CellResult, area_under_curve, tokens_to_reach
from trainers.comparison.significance import Difference, Verdict, difference, holm
from trainers.evaluation.stats import Interval, MeanEstimate, mean_over_seeds

__all__ = ["MethodRow", "method_rows", "table_text"]

_TARGET = 0.6


@dataclass(frozen=True)
class MethodRow:
    """A method over its seeds.

    Attributes:
        method: Name of the method.
        seeds: Its seeds.
        without: Skill-free success after training, over seeds.
        with_skill: Success with the skill after training, over seeds.
        area: Mean skill-free success over the budget of generated tokens, over seeds.
        tokens_to_target: Median tokens until the validation first showed 60 % without the skill; None if half of the
            seeds never got there.
        tokens: Mean tokens generated.
        prompt_tokens: Mean tokens read, per update.
        env_steps: Mean environment steps.
        seconds_per_update: Median over the seeds.
        difference: Against the baseline; None for the baseline itself.
        verdict: What may be said of it, after Holm's adjustment over the methods.
    """

    method: str
    seeds: tuple[int, ...]
    without: MeanEstimate
    with_skill: MeanEstimate
    area: MeanEstimate
    tokens_to_target: int | None
    tokens: float
    prompt_tokens: float
    env_steps: float
    seconds_per_update: float
    difference: Difference | None
    verdict: Verdict | None

    def to_json(self) -> dict[str, Any]:
        """JSON-able values."""
        own = self.difference
        return {
            "method": self.method,
            "seeds": list(self.seeds),
            **{name: _estimate(getattr(self, name)) for name in ("without", "with_skill", "area")},
            "tokens_to_60": self.tokens_to_target,
            "tokens": self.tokens,
            "prompt_tokens_per_update": self.prompt_tokens,
            "env_steps": self.env_steps,
            "seconds_per_update": self.seconds_per_update,
            "difference": own and {"mean": own.mean, "interval": _pair(own.interval), "p_value": own.p_value},
            "verdict": self.verdict,
        }


def method_rows(cells: Sequence[CellResult], baseline: str, budget: int) -> list[MethodRow]:
    """One row per method, in the order in which the methods first appear.

    Args:
        cells: All cells of a comparison.
        baseline: The method that the others are compared with.
        budget: Generated tokens over which the area is taken.

    Raises:
        ConfigError: There are no cells of the baseline, or the panels differ.
    """
    by_method: dict[str, list[CellResult]] = {}
    for cell in cells:
        by_method.setdefault(cell.method, []).append(cell)
    if baseline not in by_method:
        raise ConfigError(f"The baseline {baseline!r} has no cells; there are {', '.join(by_method) or 'none at all'}")
    others = {name: difference(own, by_method[baseline]) for name, own in by_method.items() if name != baseline}
    adjusted = holm({name: found.p_value for name, found in others.items()})
    return [_row(name, own, budget, others.get(name), adjusted.get(name, 1.0)) for name, own in by_method.items()]


def table_text(rows: Sequence[MethodRow]) -> str:
    """The table in Markdown; rates in percent with 95 % intervals over seeds, differences over seeds and tasks."""
    head = (
        "| method | seeds | without skill | with skill | area | tokens to 60 % | against the baseline | tokens | "
        "environment steps | prompt tokens per update | s per update |"
    )
    return "\n".join([head, "|---" * 11 + "|", *(_line(row) for row in rows)])


def _row(
    name: str, cells: Sequence[CellResult], budget: int, against: Difference | None, adjusted_p: float
) -> MethodRow:
    reached = [tokens_to_reach(cell.curve, _TARGET) for cell in cells]
    found = [tokens for tokens in reached if tokens is not None]
    return MethodRow(
        method=name,
        seeds=tuple(cell.seed for cell in cells),
        without=mean_over_seeds([cell.without for cell in cells]),
        with_skill=mean_over_seeds([cell.with_skill for cell in cells]),
        area=mean_over_seeds([area_under_curve(cell.curve, budget) for cell in cells]),
        tokens_to_target=int(median(found)) if 2 * len(found) > len(reached) else None,
        tokens=fmean(cell.tokens_generated for cell in cells),
        prompt_tokens=fmean(cell.prompt_tokens / max(cell.updates, 1) for cell in cells),
        env_steps=fmean(cell.env_steps for cell in cells),
        seconds_per_update=median(cell.seconds_per_update for cell in cells),
        difference=against,
        verdict=against.verdict(adjusted_p) if against else None,
    )


def _line(row: MethodRow) -> str:
    reached = "never" if row.tokens_to_target is None else f"{row.tokens_to_target:,}"
    cells = (
        row.method,
        str(len(row.seeds)),
        _rate(row.without),
        _rate(row.with_skill),
        _rate(row.area),
        reached,
        _against(row),
        f"{row.tokens:,.0f}",
        f"{row.env_steps:,.0f}",
        f"{row.prompt_tokens:,.0f}",
        f"{row.seconds_per_update:.2f}",
    )
    return f"| {' | '.join(cells)} |"


def _rate(estimate: MeanEstimate) -> str:
    own = estimate.interval
    shown = f" [{100 * max(own.low, 0.0):.0f}, {100 * min(own.high, 1.0):.0f}]" if own else ""
    return f"{100 * estimate.mean:.1f}{shown}"


def _against(row: MethodRow) -> str:
    if row.difference is None:
        return "(baseline)"
    own = row.difference.interval
    shown = f" [{100 * own.low:+.0f}, {100 * own.high:+.0f}]" if own else ""
    return f"{100 * row.difference.mean:+.1f}{shown}: {row.verdict}"


def _estimate(estimate: MeanEstimate) -> Mapping[str, Any]:
    return {"mean": estimate.mean, "interval": _pair(estimate.interval), "n": estimate.n}


def _pair(interval: Interval | None) -> list[float] | None:
    return None if interval is None else [interval.low, interval.high]
