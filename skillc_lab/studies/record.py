"""The record of a comparison: one JSON file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillc_gym.errors import MissingDataError, TranscriptError
from skillc_lab.studies.plan import UNTRAINED, ComparisonPlan
from skillc_lab.studies.result import CellResult
from skillc_lab.studies.table import MethodRow, method_rows
from trainers.tracking.revision import one_revision
from trainers.tracking.run_folder import provenance, write_json

__all__ = ["ComparisonRecord", "read_record", "write_comparison"]


@dataclass(frozen=True)
class ComparisonRecord:
    """What a comparison's file holds.

    Attributes:
        title: Name of the record and its pictures.
        protocol: What all cells share.
        results: All cells that are done, the untrained starting points included.
    """

    title: str
    protocol: Mapping[str, Any]
    results: Sequence[CellResult]

    @property
    def baseline(self) -> str:
        """The method that the others are compared with."""
        return str(self.protocol["methods"][0])

    @property
    def budget(self) -> int:
        """Generated tokens of every run."""
        return int(self.protocol["settings"]["budget_tokens"])

    def cells(self, start: str) -> list[CellResult]:
        """Trained cells from a starting point, of those seeds that the baseline has."""
        own = [cell for cell in self.results if cell.start == start and cell.method != UNTRAINED]
        seeds = {cell.seed for cell in own if cell.method == self.baseline}
        return [cell for cell in own if cell.seed in seeds]

    def untrained(self, start: str) -> CellResult | None:
        """A starting point as it is."""
        return next((cell for cell in self.results if cell.start == start and cell.method == UNTRAINED), None)

    def rows(self, start: str) -> list[MethodRow]:
        """The table's rows for a starting point; none before the baseline has a cell there."""
        cells = self.cells(start)
        return method_rows(cells, self.baseline, self.budget, self.untrained(start)) if cells else []

    @property
    def starts(self) -> list[str]:
        """The starting points that have rows."""
        return [start for start in self.protocol["starts"] if self.cells(start)]


def write_comparison(plan: ComparisonPlan, results: Sequence[CellResult]) -> ComparisonRecord:
    """Writes the record of the cells that are there."""
    record = ComparisonRecord(plan.title, plan.protocol, results)
    values = {
        "title": record.title,
        "protocol": dict(record.protocol),
        "revision": one_revision([cell.versions.get("git") for cell in results], allow_changes=True),
        "versions": provenance(),
        "rows": {start: [row.to_json() for row in record.rows(start)] for start in record.starts},
        **_packed(results),
    }
    write_json(plan.folder / f"{plan.title}.json", values)
    return record


def read_record(path: Path) -> ComparisonRecord:
    """Reads what :func:`write_comparison` wrote.

    Raises:
        MissingDataError: There is no such file.
        TranscriptError: It holds something else.
    """
    if not path.is_file():
        raise MissingDataError(f"There is no record {path}; the same command without --draw makes one")
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        return ComparisonRecord(str(values["title"]), values["protocol"], _unpacked(values))
    except (KeyError, TypeError, ValueError) as error:
        raise TranscriptError(f"{path} is no record of a comparison: {error}") from error


def _packed(results: Sequence[CellResult]) -> dict[str, Any]:
    """Results with their panels lifted out: each panel stands once, under its hash."""
    cells = [cell.to_json() for cell in results]
    panels = {cell["panel_sha256"]: cell.pop("panel") for cell in cells}
    versions: list[Any] = []
    for cell in cells:
        own = cell.pop("versions")
        if own not in versions:
            versions.append(own)
        cell["versions"] = versions.index(own)
    return {"panels": panels, "versions_of_cells": versions, "cells": cells}


def _unpacked(values: Mapping[str, Any]) -> list[CellResult]:
    return [
        CellResult.from_json(
            {
                **cell,
                "panel": values["panels"][cell["panel_sha256"]],
                "versions": values["versions_of_cells"][cell["versions"]],
            }
        )
        for cell in values["cells"]
    ]
