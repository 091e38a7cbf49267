"""The revision that a record is of: one, and clean."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainers.tracking import one_revision, provenance, require_clean, write_json

__all__ = ["one_revision", "require_clean", "write_record"]


def write_record(path: Path, values: Mapping[str, Any]) -> None:
    """Writes a record as JSON, marked with the revision that it was made on and whether the tree had changes."""
    write_json(path, {**values, "git": provenance()["git"]})
