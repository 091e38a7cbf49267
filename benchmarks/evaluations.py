"""Evaluations of policies, as ``skillc evaluate --out`` wrote them, gathered into a record of one clean revision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from skillc_gym.errors import MissingDataError
from trainers.tracking import one_revision, read_object

__all__ = ["Describe", "evaluations_record"]

Describe = Callable[[Path, dict[str, Any]], dict[str, Any]]
"""From an evaluation's folder and settings to what a record says of it beside its report and versions."""


def evaluations_record(folders: Sequence[Path], describe: Describe) -> dict[str, Any]:
    """Reads evaluations of one revision.

    Args:
        folders: As ``skillc evaluate --out`` wrote them.
        describe: What else the record says of each.

    Raises:
        MissingDataError: A folder holds no evaluation.
        ConfigError: They are of several revisions, or of one with changes.
    """
    found = [_evaluation(folder, describe) for folder in folders]
    revision = one_revision([each["versions"].get("git") for each in found])
    return {"revision": revision, "evaluations": found}


def _evaluation(folder: Path, describe: Describe) -> dict[str, Any]:
    if not (folder / "report.json").is_file():
        raise MissingDataError(
            f"{folder} holds no evaluation (report.json); make one by skillc evaluate --out {folder}"
        )
    described = describe(folder, read_object(folder / "config.json"))
    versions, report = (read_object(folder / f"{name}.json") for name in ("versions", "report"))
    return {**described, "versions": versions, "report": report}
