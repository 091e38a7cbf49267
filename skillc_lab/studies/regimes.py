"""The regimes of one or more comparisons: a world and a starting point each, with its table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from skillc_gym.errors import ConfigError
from skillc_lab.studies.record import ComparisonRecord
from skillc_lab.studies.result import CellResult
from skillc_lab.studies.table import MethodRow

__all__ = ["Regime", "by_lead", "regimes_of"]


@dataclass(frozen=True)
class Regime:
    """A starting point in a world, and what every method came to from there.

    Attributes:
        env: Environment.
        world: The same and, where they are not generated, its tasks.
        start: Name of the starting point.
        rows: The table's rows, the baseline first.
        cells: The trained cells behind them.
        budget: Generated tokens of every run.
        before: The starting point itself.
    """

    env: str
    world: str
    start: str
    rows: Sequence[MethodRow]
    cells: Sequence[CellResult]
    budget: int
    before: CellResult | None

    @property
    def name(self) -> str:
        """What its panel is called."""
        return f"{self.world}, {self.start} start" if self.start else self.world

    @property
    def seeds(self) -> str:
        """How many seeds the methods have: ``3 seeds``, or ``1 to 3 seeds`` where they differ."""
        counts = [len(row.seeds) for row in self.rows]
        least = "" if min(counts) == max(counts) else f"{min(counts)} to "
        return f"{least}{max(counts)} seed{'' if max(counts) == 1 else 's'}"

    def row(self, method: str) -> MethodRow | None:
        """A method's row; None where it was not run."""
        return next((row for row in self.rows if row.method == method), None)


def regimes_of(records: Sequence[ComparisonRecord]) -> list[Regime]:
    """The starting points of some records, in their order, as far as their baseline has cells.

    Raises:
        ConfigError: There are none, or the records have different baselines.
    """
    baselines = sorted({record.baseline for record in records})
    if len(baselines) > 1:
        raise ConfigError(
            f"Regimes stand side by side over one baseline, and these records have {', '.join(baselines)}"
        )
    found = [_regime(record, start) for record in records for start in record.starts]
    if not found:
        raise ConfigError("There is nothing to draw: no record has a cell of its baseline")
    return found


def by_lead(regimes: Sequence[Regime], methods: Sequence[str] = ()) -> list[str]:
    """Methods in the order of their mean lead over the baseline, the baseline first.

    Args:
        regimes: Where they were run.
        methods: These alone; all if empty.

    Raises:
        ConfigError: One of them was run nowhere.
    """
    leads: dict[str, list[float]] = {}
    for regime in regimes:
        base = regime.rows[0].without.mean
        for row in regime.rows:
            leads.setdefault(row.method, []).append(row.without.mean - base)
    for name in methods:
        if name not in leads:
            raise ConfigError(f"No record has a cell of {name!r}; there are {', '.join(leads)}")
    baseline = regimes[0].rows[0].method
    others = [name for name in leads if name != baseline and (not methods or name in methods)]
    return [baseline, *sorted(others, key=lambda name: -fmean(leads[name]))]


def _regime(record: ComparisonRecord, start: str) -> Regime:
    settings = record.protocol["settings"]
    env, data = str(settings["env"]), settings.get("data")
    world = env if data in (None, "generated") else f"{env} (real tasks)"
    return Regime(env, world, start, record.rows(start), record.cells(start), record.budget, record.untrained(start))
