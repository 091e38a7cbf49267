"""JSON that a run left, or that somebody else wrote in its place: read in bounds, refused in words."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from skill_library.errors import brief
from skill_library.files import read_bounded
from skillc_gym.files import replace_file

__all__ = [
    "MAX_LINE_BYTES",
    "MAX_OBJECT_BYTES",
    "iter_records",
    "json_line",
    "parse_object",
    "read_object",
    "write_json",
]

MAX_OBJECT_BYTES = 67_108_864
"""Longest file of one object."""
MAX_LINE_BYTES = 4_194_304
"""Longest line of ``metrics.jsonl``."""
MAX_STEP = 10**12
"""Steps from here on are no steps."""


def read_object(path: Path) -> dict[str, Any]:
    """Reads a file that holds one JSON object.

    Raises:
        FileNotFoundError: There is no such file.
        UnreadableFileError: It is no regular file, is too large, or may not be read.
        ValueError: It holds something else.
    """
    return parse_object(read_bounded(path, MAX_OBJECT_BYTES))


def parse_object(content: bytes) -> dict[str, Any]:
    """Reads one JSON object.

    Raises:
        ValueError: It is something else, or nested too deep.
    """
    try:
        found = json.loads(content)
    except RecursionError as error:
        raise ValueError("its JSON is nested too deep") from error
    if not isinstance(found, dict):
        raise ValueError(f"expected a JSON object, got {brief(found)}")
    return found


def iter_records(path: Path) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """Reads the lines of a ``metrics.jsonl``, each for itself.

    Yields:
        A line's number from 1 on and its record, an object with a ``step``; None for a line that holds none
        (cut off by a kill, overwritten, too long). Empty lines are left out.
    """
    with path.open("rb") as stream:
        for number, line in enumerate(iter(lambda: stream.readline(MAX_LINE_BYTES + 1), b""), 1):
            if line.strip():
                yield number, _record(line)


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        found = parse_object(line)
    except ValueError:
        return None
    step = found.get("step")
    return found if type(step) is int and 0 <= step < MAX_STEP else None


def write_json(path: Path, value: Mapping[str, Any] | Sequence[Any]) -> None:
    """Writes a JSON file whole or not at all; numbers that are not finite become null.

    Raises:
        StorageError: The disk is full or read-only.
    """
    replace_file(path, [(json.dumps(_finite(value), indent=1) + "\n").encode("ascii")])


def json_line(record: Mapping[str, Any]) -> bytes:
    """An object as one line; numbers that are not finite become null."""
    return json.dumps(_finite(record)).encode("ascii") + b"\n"


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value
