"""Records: what a measurement or a study found, as JSON with the revision that it was made on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from skillc_gym.errors import ConfigError, SkillCError
from trainers.tracking import provenance, read_object, write_json


def read_json(path: str | Path) -> dict[str, Any]:
    """Reads a record.

    Raises:
        ConfigError: There is none, or it holds something else than one JSON object.
    """
    try:
        return read_object(Path(path))
    except (OSError, ValueError, SkillCError) as error:
        raise ConfigError(f"{path} is no record that can be read: {error}") from error


def write_record(path: Path, values: Mapping[str, Any]) -> None:
    """Writes a record, marked with the revision that it was made on and whether the tree had changes.

    Raises:
        StorageError: The disk is full or read-only.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, {**values, "git": provenance()["git"]})


def record_names(paths: Sequence[Path]) -> list[str]:
    """What a table calls the records that it was made from: no folder of a machine, only what was given below it."""
    return [path.name if path.is_absolute() else path.as_posix() for path in paths]
