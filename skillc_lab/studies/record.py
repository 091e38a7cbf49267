"""The record of a comparison, one JSON file, and its regimes: what every method came to from each starting point."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any

from skillc_gym.errors import ConfigError, MissingDataError, TranscriptError
from skillc_lab.studies.cells import kept_texts
from skillc_lab.studies.declared import preregistration
from skillc_lab.studies.plan import UNTRAINED, Cell, ComparisonPlan
from skillc_lab.studies.result import CellResult
from skillc_lab.studies.table import MethodRow, method_rows
from trainers.tracking import one_revision, provenance, write_json


@dataclass(frozen=True)
class Regime:
    """A starting point in a world, and what every method came to from there.

    ``world`` is the environment and, where they are not generated, its tasks. ``rows`` are the table's, the baseline
    first, ``cells`` the trained ones behind them; ``before`` is the starting point itself.
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
        """What its part of a picture is called."""
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


@dataclass(frozen=True)
class ComparisonRecord:
    """What a comparison's file holds: title, what all cells share, and the cells that are done, starting points too."""

    title: str
    protocol: Mapping[str, Any]
    results: Sequence[CellResult]
    texts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By a cell's name, hashes of the skill library and the weights that it was of, as far as they were kept."""

    @property
    def baseline(self) -> str:
        """The method that the others are compared with."""
        return str(self.protocol["methods"][0])

    @property
    def budget(self) -> int:
        """Generated tokens of every run."""
        return int(self.protocol["settings"]["budget_tokens"])

    @cached_property
    def found(self) -> dict[tuple[str, str, int], CellResult]:
        """The cells by starting point, method and seed."""
        return {cell.place: cell for cell in self.results}

    @cached_property
    def regimes(self) -> list[Regime]:
        """The starting points from which the baseline has cells, with all trained cells of the baseline's seeds."""
        settings, found = self.protocol["settings"], []
        env, data, budget = str(settings["env"]), settings.get("data"), self.budget
        real = env in _FINDING if data is None else data != "generated"
        world = f"{env} (real tasks)" if real else env
        for start in self.protocol["starts"]:
            own = [cell for cell in self.results if cell.start == start]
            seeds = {cell.seed for cell in own if cell.method == self.baseline}
            cells = [cell for cell in own if cell.method != UNTRAINED and cell.seed in seeds]
            before = next((cell for cell in own if cell.method == UNTRAINED), None)
            if cells:
                rows = method_rows(cells, self.baseline, budget, before)
                found.append(Regime(env, world, start, rows, cells, budget, before))
        return found


def record_path(plan: ComparisonPlan) -> Path:
    """The file of a comparison's record."""
    return plan.folder / f"{plan.title}.json"


def write_comparison(plan: ComparisonPlan, results: Sequence[CellResult]) -> ComparisonRecord:
    """Writes the record of the cells that are there."""
    texts = {cell.name: kept_texts(plan, cell) for cell in (Cell(*result.place) for result in results)}
    record = ComparisonRecord(plan.title, plan.protocol, results, texts)
    declared = plan.declared if plan.preregistered else None
    values = {
        "title": record.title,
        "protocol": dict(record.protocol),
        "revision": one_revision([cell.versions.get("git") for cell in results], allow_changes=True),
        "preregistered": preregistration(declared, [cell.started for cell in results]),
        "versions": provenance(),
        "texts": dict(record.texts),
        **_packed(results),
    }
    write_json(record_path(plan), values)
    return record


def read_record(path: Path) -> ComparisonRecord:
    """Reads what :func:`write_comparison` wrote.

    Raises:
        MissingDataError: There is no such file.
        TranscriptError: It holds something else.
    """
    if not path.is_file():
        raise MissingDataError(f"There is no record {path}; skillc study RUN_FILE makes one")
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        panels, versions = values["panels"], values["versions_of_cells"]
        cells = [
            {**cell, "panel": panels[cell["panel_sha256"]], "versions": versions[cell["versions"]]}
            for cell in values["cells"]
        ]
        results = list(map(CellResult.from_json, cells))
        return ComparisonRecord(str(values["title"]), values["protocol"], results, values.get("texts", {}))
    except (KeyError, TypeError, ValueError) as error:
        raise TranscriptError(f"{path} is no record of a comparison: {error}") from error


def _packed(results: Sequence[CellResult]) -> dict[str, Any]:
    """Results with what they share lifted out: each panel stands once, under its hash, and each set of versions."""
    cells = [cell.to_json() for cell in results]
    panels = {cell["panel_sha256"]: cell.pop("panel") for cell in cells}
    versions: list[Any] = []
    for cell in cells:
        own = cell.pop("versions")
        if own not in versions:
            versions.append(own)
        cell["versions"] = versions.index(own)
    return {"panels": panels, "versions_of_cells": versions, "cells": cells}


def regimes_of(records: Sequence[ComparisonRecord]) -> list[Regime]:
    """The starting points of some records of one baseline, in their order, as far as it has cells."""
    baselines = sorted({record.baseline for record in records})
    if len(baselines) > 1:
        raise ConfigError(f"Regimes are drawn over one baseline, and these records have {', '.join(baselines)}")
    found = [regime for record in records for regime in record.regimes]
    if not found:
        raise ConfigError("There is nothing to draw: no record has a cell of its baseline")
    return found


_FINDING = ("alfworld", "webshop", "webshop-browser")
"""Environments that find tasks by themselves which are not made."""


def with_method(record: ComparisonRecord, other: ComparisonRecord, method: str, place: str = "") -> ComparisonRecord:
    """A record with a method's cells of another one, beside its own or in the ``place`` of one of its methods.

    A ConfigError where the other has none, or was validated on or has played other tasks, at another budget, from other
    starts or in another way.
    """
    starts = record.protocol["starts"]
    alike = all(starts.get(name, model) == model for name, model in other.protocol["starts"].items())
    own, theirs = (each.protocol["settings"] for each in (record, other))
    for names, how in ((_PANEL, "validated on other tasks"), (_MEASURES, "measured in other ways")):
        if differing := [name for name in names if own.get(name) != theirs.get(name)]:
            raise ConfigError(
                f"{other.title} and {record.title} were {how} ({', '.join(differing)}); they are no table"
            )
    if not alike or other.budget != record.budget:
        raise ConfigError(f"{other.title} and {record.title} differ in budget or starting points; they are no table")
    name = place or method
    taken = [replace(cell, method=name) for cell in other.results if cell.method == method]
    kept = [cell for cell in record.results if cell.method != name]
    if not taken or len({cell.panel_sha256 for cell in (*kept, *taken)}) > 1:
        raise ConfigError(f"{other.title} has no cells of {method} on the tasks of {record.title}")
    return replace(record, results=[*taken, *kept] if place else [*kept, *taken])


_PANEL = ("panel_seed", "panel_per_type")
"""Settings that choose the tasks of validations, over which means over training are paired."""
_MEASURES = (
    *("eval_temperature", "eval_greedy", "top_p", "top_k", "min_p"),
    *("max_episode_steps", "skill_grade", "env_wrappers"),
)
"""Settings that decide what an evaluation finds."""


def by_lead(regimes: Sequence[Regime]) -> list[str]:
    """Methods in the order of their mean lead over the baseline, the baseline first."""
    leads: dict[str, list[float]] = {}
    for regime in regimes:
        base = regime.rows[0].without.mean
        for row in regime.rows:
            leads.setdefault(row.method, []).append(row.without.mean - base)
    baseline = regimes[0].rows[0].method
    others = [name for name in leads if name != baseline]
    return [baseline, *sorted(others, key=lambda name: -fmean(leads[name]))]
