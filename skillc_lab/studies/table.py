"""From the cells of a comparison to its table: a row per method, and columns that each stand in one place."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from statistics import fmean, median
from typing import NamedTuple

from skillc_gym.errors import ConfigError
from skillc_lab.studies.result import CellResult, by_env_steps
from skillc_lab.studies.significance import area, area_difference, change, difference, success
from skillc_lab.tables import ACTED, Table, acted_cell, points, rate
from trainers.stats import Difference, MeanEstimate, Verdict, holm, sign_flip_p

_TARGET = 0.6


@dataclass(frozen=True)
class BaselineComparison:
    """One measure of a method minus the baseline's, and what may be said after Holm's step over the methods."""

    difference: Difference
    adjusted_p: float
    verdict: Verdict


@dataclass(frozen=True)
class MethodRow:
    """A method over its seeds, compared with the baseline (but for itself) at the end and by the area over tokens.

    ``budget`` are the generated tokens over which the area is taken, ``steps`` the environment steps that every run of
    the table took; ``before`` is the starting point, if it was played.
    """

    method: str
    cells: Sequence[CellResult]
    budget: int
    steps: int
    before: CellResult | None
    against: BaselineComparison | None
    area_against: BaselineComparison | None

    @property
    def seeds(self) -> tuple[int, ...]:
        """Its seeds."""
        return tuple(cell.seed for cell in self.cells)

    def by_seed(self, what: str) -> list[float]:
        """``without`` or ``with_skill`` of every seed."""
        return [getattr(cell, what) for cell in self.cells]

    @cached_property
    def without(self) -> MeanEstimate:
        """Skill-free success after training, over seeds and tasks."""
        return success(self.cells, skill=False)

    @cached_property
    def with_skill(self) -> MeanEstimate:
        """Success with the skill after training, over seeds and tasks."""
        return success(self.cells, skill=True)

    @cached_property
    def area(self) -> MeanEstimate:
        """Mean skill-free success over the budget of generated tokens, over seeds and tasks."""
        return area(self.cells, self.budget)

    @cached_property
    def area_by_steps(self) -> MeanEstimate:
        """The same over environment steps."""
        by_steps = [replace(cell, curve=tuple(by_env_steps(cell.curve))) for cell in self.cells]
        return area(by_steps, self.steps)

    @property
    def tokens_to_target(self) -> int | None:
        """Median tokens until a validation first showed 60 %; None if half of the seeds never got there."""
        middle = median(
            next((point.tokens for point in cell.curve if point.without >= _TARGET), math.inf) for cell in self.cells
        )
        return int(middle) if math.isfinite(middle) else None

    @cached_property
    def changes(self) -> dict[str, Difference]:
        """Success minus that of the starting point, by condition; empty where the starting point was not played."""
        if self.before is None:
            return {}
        return {arm: change(self.cells, self.before, skill=arm == "with") for arm in ("without", "with")}

    def mean(self, what: Callable[[CellResult], float]) -> float:
        """The mean of something over the seeds."""
        return fmean(map(what, self.cells))


def method_rows(
    cells: Sequence[CellResult], baseline: str, budget: int, before: CellResult | None = None
) -> list[MethodRow]:
    """One row per method, in the order in which the methods first appear, each compared with the baseline.

    The cells are all trained ones of a comparison from one starting point, which is ``before``.
    """
    by_method: dict[str, list[CellResult]] = {}
    for cell in cells:
        by_method.setdefault(cell.method, []).append(cell)
    if baseline not in by_method:
        raise ConfigError(f"The baseline {baseline!r} has no cells; there are {', '.join(by_method) or 'none at all'}")
    base = by_method[baseline]
    others = {name: own for name, own in by_method.items() if name != baseline}
    against = judged({name: difference(own, base) for name, own in others.items()}, len(base))
    areas = judged({name: area_difference(own, base, budget) for name, own in others.items()}, len(base))
    steps = max(1, min(cell.usage.env_steps for cell in cells))
    return [
        MethodRow(name, own, budget, steps, before, against.get(name), areas.get(name))
        for name, own in by_method.items()
    ]


def judged(differences: Mapping[str, Difference], seeds: int = 2) -> dict[str, BaselineComparison]:
    """Holm's step over the methods, for differences and for equivalences.

    One seed stands for no method, and a method that lacks some of the baseline's seeds would be compared with another
    baseline than the others are: neither gets a verdict, nor a share in the adjustment. ``seeds`` are the baseline's;
    where each difference has a baseline of its own, two are enough.
    """
    whole = {name: found for name, found in differences.items() if found.seeds >= max(seeds, 2)}
    differ = holm({name: found.p_value for name, found in whole.items()})
    equal = holm({name: found.equivalence_p() for name, found in whole.items()})
    judgements = {}
    for name, found in differences.items():
        p_value = differ.get(name, 1.0)
        few = 1 < found.seeds < seeds
        verdict: Verdict = "fewer seeds" if few else found.verdict(p_value, equal.get(name, 1.0))
        judgements[name] = BaselineComparison(found, p_value, verdict)
    return judgements


# The table ----------------------------------------------------------------------------------------------------------


class Column(NamedTuple):
    """One column: its head, what it says of a method, and of the starting point."""

    name: str
    show: Callable[[MethodRow], str]
    start: Callable[[CellResult], str] = lambda before: ""


def _rate(estimate: MeanEstimate) -> str:
    return rate(estimate.mean, estimate.interval)


def _points(found: Difference) -> str:
    return points(found.mean, found.interval)


def _said(against: BaselineComparison | None) -> str:
    return f"{_points(against.difference)}: {against.verdict}" if against else "(baseline)"


def _ahead(against: BaselineComparison | None) -> str:
    """How many seeds are ahead of the baseline's, with the p-value of the sign-flip test."""
    if against is None or against.difference.seeds < 2:
        return ""
    found = against.difference
    return f"{found.seeds_ahead} of {found.seeds}, p {sign_flip_p(found.by_seed):.3f}"


def _mean(value: Callable[[CellResult], float]) -> Callable[[MethodRow], str]:
    return lambda row: f"{row.mean(value):,.0f}"


COLUMNS: tuple[Column, ...] = (
    Column("method", lambda row: row.method, lambda before: "(starting point)"),
    Column("seeds", lambda row: str(len(row.seeds))),
    Column("mean over training", lambda row: _rate(row.area)),
    Column("against the baseline", lambda row: _said(row.area_against)),
    Column("without skill", lambda row: _rate(row.without), lambda before: f"{100 * before.without:.1f}"),
    Column("against the baseline", lambda row: _said(row.against)),
    Column("seeds ahead, sign-flip test", lambda row: _ahead(row.against)),
    Column("with skill", lambda row: _rate(row.with_skill), lambda before: f"{100 * before.with_skill:.1f}"),
    Column("with, change", lambda row: _points(row.changes["with"]) if row.changes else ""),
    Column("mean over environment steps", lambda row: _rate(row.area_by_steps)),
    Column("tokens to 60 %", lambda row: "never" if (found := row.tokens_to_target) is None else f"{found:,}"),
    Column("tokens", _mean(lambda cell: cell.usage.tokens_generated)),
    Column("environment steps", _mean(lambda cell: cell.usage.env_steps)),
    Column("prompt tokens per update", _mean(lambda cell: cell.usage.prompt_tokens / max(cell.usage.updates, 1))),
    Column("s per update", lambda row: f"{median(cell.usage.seconds_per_update for cell in row.cells):.2f}"),
)
"""What the table says of a method: percent and points with 95 % intervals over seeds and tasks; sign-flip p-values."""


def _good(name: str, row: MethodRow) -> str:
    """A share of the panel's turns without the skill."""
    found = [cell.actions.get("without", {}).get(name) for cell in row.cells]
    shares = [share for share in found if share is not None]
    return f"{100 * fmean(shares):.1f}" if shares else ""


def _acted(name: str, row: MethodRow) -> str:
    return acted_cell(name, [cell.acted for cell in row.cells])


OPTIONAL_COLUMNS = (
    Column("well-formed, without", partial(_good, "well_formed")),
    Column("admissible, without", partial(_good, "admissible")),
    *(Column(head, partial(_acted, name)) for name, (head, _) in ACTED.items()),
)
"""How good replies and commands were, and what the method's own parts did: those of which any row has something."""


def comparison_table(rows: Sequence[MethodRow], before: CellResult | None = None) -> Table:
    """The table of :data:`COLUMNS`, and of :data:`OPTIONAL_COLUMNS`: the starting point if played, a row per method."""
    columns = [*COLUMNS, *(column for column in OPTIONAL_COLUMNS if any(map(column.show, rows)))]
    start = [[column.start(before) for column in columns]] if before is not None else []
    return Table([column.name for column in columns], [*start, *([c.show(row) for c in columns] for row in rows)])
