"""A plan and a record: the same protocol or another one, the same outcomes or others, and cells taken over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from skillc_gym.errors import CheckpointError, ConfigError
from skillc_lab.studies.cells import cell_path, write_cell
from skillc_lab.studies.plan import Cell, ComparisonPlan
from skillc_lab.studies.record import ComparisonRecord
from skillc_lab.studies.result import CellResult, TaskOutcome
from trainers.config import TrainConfig
from trainers.tracking import make_folder


@dataclass(frozen=True)
class CellCheck:
    """A cell compared with the same one of a record.

    Attributes:
        without: Tasks, of so many, whose outcome without the skill differs.
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
        differ = f"differs in {self.without} of {self.tasks} tasks without the skill, {self.with_skill} with"
        parted = f"; its validations part at update {self.validations[0]}" if self.validations else ""
        changed = ", ".join(f"{name} was {was} and is {now}" for name, (was, now) in self.versions.items())
        return f"{self.name}: {differ}{parted}{f' ({changed})' if changed else ''}"


def check_cell(result: CellResult, record: ComparisonRecord) -> CellCheck:
    """Compares a cell with that of a record, which must have it, task by task."""
    cell, recorded = Cell(*result.place), record.found.get(result.place)
    if recorded is None:
        raise ConfigError(f"The record {record.title} has no cell {cell.name}")
    own, other = ({outcome.task_id: outcome for outcome in each.outcomes} for each in (result, recorded))
    now, then = ({point.update: point for point in each.curve} for each in (result, recorded))
    made, was_made = _computed_by(result), _computed_by(recorded)
    return CellCheck(
        name=cell.name,
        tasks=len(own.keys() | other.keys()),
        without=_differing(own, other, "without"),
        with_skill=_differing(own, other, "with"),
        validations=tuple(update for update in sorted(now.keys() | then.keys()) if now.get(update) != then.get(update)),
        versions={name: (was, made[name]) for name, was in was_made.items() if made.get(name, was) != was},
    )


def require_recorded(plan: ComparisonPlan, cells: Iterable[Cell], record: ComparisonRecord) -> None:
    """Refuses, before anything runs, what could not come to the record's figures; an error says where they differ."""
    for cell in cells:
        if cell.place not in record.found:
            raise ConfigError(
                f"The record {record.title} has no cell {cell.name}; choose some that it has by --methods, --starts "
                "and --seeds"
            )
        if changed := _protocol_differences(record.protocol, plan.protocol, cell):
            raise ConfigError(f"{cell.name} of the record {record.title} was run under another protocol: {changed}")


def restore_cells(plan: ComparisonPlan, record: ComparisonRecord) -> list[Cell]:
    """Writes the cells of a record that the plan asks for and that are not there yet, and returns them.

    The plan may have more cells. The record's revision is left to :func:`~skillc_lab.studies.require_one_revision`.

    Raises:
        CheckpointError: One of them was run under another protocol; none has been written then.
    """
    known = [cell for cell in plan.jobs if cell.place in record.found]
    for cell in known:
        if changed := _protocol_differences(record.protocol, plan.protocol, cell):
            raise CheckpointError(f"{cell.name} of the record was run under another protocol: {changed}")
    restored = [cell for cell in known if not cell_path(plan, cell).is_file()]
    make_folder(plan.folder / "cells")
    for cell in restored:
        write_cell(plan, cell, record.found[cell.place])
    return restored


def _protocol_differences(was: Mapping[str, Any], now: Mapping[str, Any], cell: Cell) -> str:
    """What decides a cell's figures, apart from code and seed, and differs: ``name was X and is Y``, with commas.

    A setting that a record does not have came later, and stood at what is its default now.
    """
    before, after = {**TrainConfig(model="").legacy_json(), **_decisive(was, cell)}, _decisive(now, cell)
    names = [*after, *(name for name in _decisive(was, cell) if name not in after)]
    values = [(name, before.get(name, "nothing"), after.get(name, "nothing")) for name in names]
    return ", ".join(f"{name} was {then} and is {here}" for name, then, here in values if then != here)


def _decisive(protocol: Mapping[str, Any], cell: Cell) -> dict[str, Any]:
    return {
        **protocol["settings"],
        "start": protocol["starts"].get(cell.start),
        "held_out": protocol["held_out"],
        "per_type": protocol["per_type"],
        "overrides": protocol["overrides"].get(cell.method, {}),
    }


def _differing(own: Mapping[str, TaskOutcome], other: Mapping[str, TaskOutcome], arm: str) -> int:
    """Tasks with another outcome in a condition; one that only one of them has counts too."""

    def outcome(found: TaskOutcome | None) -> object:
        return found and (getattr(found, f"won_{arm}"), getattr(found, f"score_{arm}"))

    return sum(outcome(own.get(task)) != outcome(other.get(task)) for task in own.keys() | other.keys())


def _computed_by(cell: CellResult) -> dict[str, str]:
    git = cell.versions.get("git") or {}
    own = {"revision": str(git.get("revision", "unknown"))[:12], "machine": cell.versions.get("machine", "unknown")}
    return {**own, **cell.versions.get("packages", {})}
