"""A part of a comparison: some of its methods, starting points and seeds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from skillc_gym.errors import unknown_name
from skillc_lab.studies.plan import Cell, ComparisonPlan

__all__ = ["EVERYTHING", "Selection"]


@dataclass(frozen=True)
class Selection:
    """Which cells of a plan are to be run now; an empty sequence stands for all.

    Attributes:
        methods: Labels of methods, as the plan has them.
        starts: Names of starting points.
        seeds: Training seeds.
    """

    methods: Sequence[str] = ()
    starts: Sequence[str] = ()
    seeds: Sequence[int] = ()

    def cells(self, plan: ComparisonPlan) -> tuple[Cell, ...]:
        """The plan's cells that are meant, in the plan's order.

        Raises:
            UnknownNameError: The plan has no such method, starting point or seed.
        """
        _require("method", self.methods, plan.methods)
        _require("starting point", self.starts, plan.models)
        _require("seed", self.seeds, plan.seeds)
        return tuple(cell for cell in plan.cells if self._means(cell))

    def jobs(self, plan: ComparisonPlan) -> tuple[Cell, ...]:
        """The cells that are meant, their starting points as they are before them."""
        cells = self.cells(plan)
        starts = {cell.start for cell in cells}
        return (*(job for job in plan.jobs if not job.trained and job.start in starts), *cells)

    def _means(self, cell: Cell) -> bool:
        chosen = ((cell.method, self.methods), (cell.start, self.starts), (cell.seed, self.seeds))
        return all(not values or value in values for value, values in chosen)


EVERYTHING = Selection()
"""All cells of a plan."""


def _require(kind: str, chosen: Sequence[object], known: Iterable[object]) -> None:
    names = [str(name) for name in known]
    for name in chosen:
        if str(name) not in names:
            raise unknown_name(f"{kind} of the run file", str(name), names)
