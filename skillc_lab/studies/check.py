"""Whether cells that were run again come to what a record says: the outcome of every task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skillc_gym.errors import ConfigError
from skillc_lab.studies.plan import Cell, ComparisonPlan
from skillc_lab.studies.protocol import protocol_differences
from skillc_lab.studies.record import ComparisonRecord
from skillc_lab.studies.result import CellResult, CurvePoint

__all__ = ["CellCheck", "check_cell", "require_recorded"]

_ABSENT = object()


@dataclass(frozen=True)
class CellCheck:
    """A cell beside the same one of a record.

    Attributes:
        name: The cell's.
        tasks: Held-out tasks of either.
        without: Tasks whose outcome without the skill differs.
        with_skill: The same with it.
        validations: Updates whose validations differ, in their tokens or in the outcome of a task.
        versions: What computed them, where that differs: by its name, the record's and this one's.
    """

    name: str
    tasks: int
    without: int
    with_skill: int
    validations: tuple[int, ...]
    versions: Mapping[str, tuple[str, str]]

    @property
    def equal(self) -> bool:
        """Whether every outcome is that of the record."""
        return not (self.without or self.with_skill or self.validations)

    def __str__(self) -> str:
        if self.equal:
            return f"{self.name}: equal to the record in all {self.tasks} tasks, with the skill and without"
        parts = [
            f"{self.name}: differs in {self.without} of {self.tasks} tasks without the skill, {self.with_skill} with"
        ]
        if self.validations:
            parts.append(f"; its validations part at update {self.validations[0]}")
        if self.versions:
            found = (f"{name} was {was} and is {now}" for name, (was, now) in self.versions.items())
            parts.append(f" ({', '.join(found)})")
        return "".join(parts)


def require_recorded(plan: ComparisonPlan, cells: Iterable[Cell], record: ComparisonRecord) -> None:
    """Refuses, before anything runs, what could not come to the record's figures.

    Raises:
        ConfigError: The record does not have one of the cells, or was made under another protocol; the message says
            where they differ.
    """
    recorded = {(found.start, found.method, found.seed) for found in record.results}
    for cell in cells:
        if (cell.start, cell.method, cell.seed) not in recorded:
            raise ConfigError(
                f"The record {record.title} has no cell {cell.name}; choose some that it has by --methods, --starts "
                "and --seeds"
            )
        if changed := protocol_differences(record.protocol, plan.protocol, cell):
            raise ConfigError(f"{cell.name} of the record {record.title} was run under another protocol: {changed}")


def check_cell(result: CellResult, record: ComparisonRecord) -> CellCheck:
    """Compares a cell with that of a record, task by task.

    Raises:
        ConfigError: The record does not have it.
    """
    cell = Cell(result.start, result.method, result.seed)
    same = (
        found
        for found in record.results
        if (found.start, found.method, found.seed) == (cell.start, cell.method, cell.seed)
    )
    recorded = next(same, None)
    if recorded is None:
        raise ConfigError(f"The record {record.title} has no cell {cell.name}")
    own, other = ({outcome.task_id: outcome for outcome in each.outcomes} for each in (result, recorded))
    tasks = own.keys() | other.keys()
    arms = {
        arm: sum(_outcome(own.get(task), arm) != _outcome(other.get(task), arm) for task in tasks)
        for arm in ("without", "with")
    }
    return CellCheck(
        name=cell.name,
        tasks=len(tasks),
        without=arms["without"],
        with_skill=arms["with"],
        validations=_parted(recorded.curve, result.curve),
        versions=_differing(_computed_by(recorded), _computed_by(result)),
    )


def _differing(was: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Values of names that both have."""
    return {name: (str(was[name]), str(now[name])) for name in was if name in now and was[name] != now[name]}


def _outcome(found: Any, arm: str) -> object:
    return _ABSENT if found is None else (getattr(found, f"won_{arm}"), getattr(found, f"score_{arm}"))


def _parted(was: Sequence[CurvePoint], now: Sequence[CurvePoint]) -> tuple[int, ...]:
    before, after = ({point.update: point for point in curve} for curve in (was, now))
    return tuple(update for update in sorted(before.keys() | after.keys()) if before.get(update) != after.get(update))


def _computed_by(cell: CellResult) -> dict[str, str]:
    git = cell.versions.get("git") or {}
    own = {"revision": str(git.get("revision", "unknown"))[:12], "machine": cell.versions.get("machine", "unknown")}
    return {**own, **cell.versions.get("packages", {})}
