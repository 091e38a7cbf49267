"""A journal of finished episodes, so that an evaluation that was interrupted goes on where it stopped."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from skillc_gym.errors import ConfigError
from skillc_gym.files import open_new, replace_file, storing


class Journal:
    """Entries by key in a file of JSON lines; the first line says what evaluation it is.

    An entry is in the file as soon as :meth:`add` returns. Lines that cannot be read (the last one, if the machine went
    down while it was written) are dropped when the journal is opened: their episodes are played again.

    Args:
        path: The file; its folder must exist.
        header: Settings of the evaluation; a journal of others is refused.

    Raises:
        ConfigError: The file is the journal of another evaluation; the message names the settings that differ.
        StorageError: The file cannot be written.
    """

    def __init__(self, path: Path, header: Mapping[str, Any]) -> None:
        self.path = path
        self.entries: dict[str, Mapping[str, Any]] = {}
        wanted = json.loads(json.dumps(header))
        if path.exists():
            found, *lines = [_read(line) for line in path.read_bytes().split(b"\n")]
            self._compare(wanted, found)
            self.entries = {entry["key"]: entry for entry in lines if entry and "key" in entry}
        replace_file(path, (_line(entry) for entry in (wanted, *self.entries.values())))

    def add(self, key: str, entry: Mapping[str, Any]) -> None:
        """Writes an entry to the disk."""
        self.entries[key] = {"key": key, **entry}
        with storing(self.path), os.fdopen(open_new(self.path, append=True), "ab") as file:
            file.write(_line(self.entries[key]))
            file.flush()
            os.fsync(file.fileno())

    def _compare(self, wanted: Mapping[str, Any], found: Mapping[str, Any] | None) -> None:
        mine, theirs = wanted, found or {}
        differing = [name for name in mine if theirs.get(name) != mine[name]]
        if differing:
            told = "; ".join(f"{name} was {theirs.get(name)!r:.80}, is {mine[name]!r:.80}" for name in differing)
            raise ConfigError(
                f"{self.path} belongs to another evaluation: {told}. Use the same settings to go on with it, or name "
                "another folder"
            )


def _line(entry: Mapping[str, Any]) -> bytes:
    return json.dumps(entry).encode("ascii") + b"\n"


def _read(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
