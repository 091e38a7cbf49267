"""A plan and a record: the same protocol or another one, the same outcomes or others, and cells taken over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from skillc_gym.envs.registry import env_spec
from skillc_gym.errors import ConfigError
from skillc_lab.studies.cells import cell_path, write_cell
from skillc_lab.studies.declared import require_preregistered
from skillc_lab.studies.plan import PATIENCE, Cell, ComparisonPlan
from skillc_lab.studies.record import ComparisonRecord
from skillc_lab.studies.result import CellResult, TaskOutcome
from trainers.config import TrainConfig, current_settings
from trainers.tracking import make_folder

_LATER = ("preset_options", "evaluation_seed")
"""Options of all methods, and the seed of evaluations. Older records do not have them, and what was not written down
cannot be compared: it is left out, and stands in the record that is written then."""


class CellCheck(NamedTuple):
    """A cell compared with the same one of a record: whether every outcome is equal, and a sentence on it."""

    equal: bool
    said: str


def check_cell(result: CellResult, record: ComparisonRecord) -> CellCheck:
    """Compares a cell with that of a record, which must have it: task by task, and validation by validation.

    Where they differ, the sentence says in how many tasks, at which update first, and what else computed them.
    """
    name, recorded = Cell(*result.place).name, record.found.get(result.place)
    if recorded is None:
        raise ConfigError(f"The record {record.title} has no cell {name}")
    own, other = ({outcome.task_id: outcome for outcome in each.outcomes} for each in (result, recorded))
    now, then = ({point.update: point for point in each.curve} for each in (result, recorded))
    tasks = own.keys() | other.keys()
    without, with_skill = (_differing(own, other, arm) for arm in ("without", "with"))
    parted = [update for update in sorted(now.keys() | then.keys()) if now.get(update) != then.get(update)]
    if not (without or with_skill or parted):
        return CellCheck(True, f"{name}: equal to the record in all {len(tasks)} tasks, with the skill and without")
    differ = f"{name}: differs in {without} of {len(tasks)} tasks without the skill, {with_skill} with"
    on_the_way = f"; its validations part at update {parted[0]}" if parted else ""
    return CellCheck(False, differ + on_the_way + _changed_versions(recorded, result))


def require_recorded(plan: ComparisonPlan, cells: Iterable[Cell], record: ComparisonRecord) -> None:
    """Refuses, before anything runs, what could not come to the record's figures; an error says where they differ."""
    for cell in cells:
        if cell.place not in record.found:
            raise ConfigError(
                f"The record {record.title} has no cell {cell.name}; choose some that it has by --methods, --starts "
                "and --seeds"
            )
        _require_protocol(plan, cell, record)


def restore_cells(plan: ComparisonPlan, record: ComparisonRecord) -> list[Cell]:
    """Writes the cells of a record that the plan asks for and that are not there yet, and returns them.

    The plan may have more cells. The record's revision is left to :func:`~skillc_lab.studies.require_one_revision`.

    Raises:
        ConfigError: One of them was run under another protocol, or began before a preregistered study was declared as
            it is; none has been written then.
    """
    known = [cell for cell in plan.jobs if cell.place in record.found]
    for cell in known:
        _require_protocol(plan, cell, record)
    if plan.preregistered:
        taken = [(cell.name, record.found[cell.place]) for cell in known]
        require_preregistered(plan.declared, [(name, result.started, result.run_file) for name, result in taken])
    restored = [cell for cell in known if not cell_path(plan, cell).is_file()]
    make_folder(plan.folder / "cells")
    for cell in restored:
        write_cell(plan, cell, record.found[cell.place], record.texts.get(cell.name, {}))
    return restored


def _require_protocol(plan: ComparisonPlan, cell: Cell, record: ComparisonRecord) -> None:
    """Refuses a cell if something that decides its figures, apart from code and seed, differs.

    A setting that a record does not have came later, and stood at what is its default now.
    """
    was, now = _decisive(record.protocol, cell), _decisive(plan.protocol, cell)
    for name in _LATER:
        if name not in was:
            del now[name]
    before = {**TrainConfig(model="").legacy_json(), **was}
    values = [(name, before.get(name, "nothing"), now.get(name, "nothing")) for name in {**now, **was}]
    if changed := ", ".join(f"{name} was {then} and is {here}" for name, then, here in values if then != here):
        raise ConfigError(f"{cell.name} of the record {record.title} was run under another protocol: {changed}")


def _decisive(protocol: Mapping[str, Any], cell: Cell) -> dict[str, Any]:
    settings = protocol["settings"]
    return {
        **_deciding(settings),
        "chat_options": _wording(settings),
        "start": protocol["starts"].get(cell.start),
        "held_out": protocol["held_out"],
        "per_type": protocol["per_type"],
        "held_out_types": protocol.get("held_out_types"),
        **{name: protocol[name] for name in _LATER if name in protocol},
        "overrides": _deciding(current_settings(protocol["overrides"].get(cell.method, {}))),
    }


def _deciding(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Without how long one waits, which moves no figure."""
    return {name: value for name, value in settings.items() if name not in PATIENCE}


def _wording(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a chat that change its preset; records differ in whether they repeat what it says."""
    options = settings.get("chat_options") or {}
    if not options:
        return {}
    preset = env_spec(settings["env"]).chat_format(settings["chat"]).to_dict()
    return {name: value for name, value in options.items() if value != preset.get(name)}


def _differing(own: Mapping[str, TaskOutcome], other: Mapping[str, TaskOutcome], arm: str) -> int:
    """Tasks with another outcome in a condition; one that only one of them has counts too."""

    def outcome(found: TaskOutcome | None) -> object:
        return found and (getattr(found, f"won_{arm}"), getattr(found, f"score_{arm}"))

    return sum(outcome(own.get(task)) != outcome(other.get(task)) for task in own.keys() | other.keys())


def _changed_versions(was: CellResult, now: CellResult) -> str:
    """What else computed a cell: ``(torch was 2 and is 3)``; nothing where all that both say is equal."""
    before, after = _computed_by(was), _computed_by(now)
    both = [(name, then, after.get(name, then)) for name, then in before.items()]
    # Older records say less of a machine.
    changed = [found for found in both if not (found[1].startswith(found[2]) or found[2].startswith(found[1]))]
    said = ", ".join(f"{name} was {then} and is {here}" for name, then, here in changed)
    return f" ({said})" if said else ""


def _computed_by(cell: CellResult) -> dict[str, str]:
    git = cell.versions.get("git") or {}
    own = {"revision": str(git.get("revision", "unknown"))[:12], "machine": cell.versions.get("machine", "unknown")}
    return {**own, **cell.versions.get("packages", {})}
