"""Episodes as JSON lines: one episode a line, files that are whole or not there."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from skillc_gym.episodes.record import Episode
from skillc_gym.errors import MissingDataError, TranscriptError
from skillc_gym.files import replace_file

MAX_LINE_BYTES = 16_777_216
"""Longest line that is read: an episode as JSON."""


def write_jsonl(path: str | os.PathLike[str], episodes: Iterable[Episode]) -> Path:
    """Writes episodes, replacing the file at once: a reader never sees half of it, nor does a run cut short leave half.

    Args:
        path: The file; its folder is made.
        episodes: What to write, one by one.

    Returns:
        The path.

    Raises:
        StorageError: The disk is full or read-only, or a link stands where the draft is written.
    """
    target = Path(path)
    # ASCII escapes keep whatever a model wrote (lone surrogates, line separators) on one readable line.
    replace_file(target, (json.dumps(episode.to_dict()).encode("ascii") + b"\n" for episode in episodes))
    return target


def read_jsonl(path: str | os.PathLike[str]) -> list[Episode]:
    """Reads episodes back, equal to those written. For files that do not fit into memory there is :func:`iter_jsonl`.

    Raises:
        MissingDataError: There is no such file.
        TranscriptError: A line is not an episode; the message names the line.
    """
    return list(iter_jsonl(path))


def iter_jsonl(path: str | os.PathLike[str]) -> Iterator[Episode]:
    """Reads episodes one by one; never more than one line is held.

    Raises:
        MissingDataError: There is no such file.
        TranscriptError: A line is not an episode, or longer than :data:`MAX_LINE_BYTES`; the message names the line.
    """
    file = Path(path)
    if not file.is_file():
        raise MissingDataError(f"No transcript {file}; expected a .jsonl file that write_jsonl wrote")
    with file.open("rb") as stream:
        for number, line in enumerate(iter(lambda: stream.readline(MAX_LINE_BYTES + 1), b""), 1):
            if len(line) > MAX_LINE_BYTES:
                raise TranscriptError(f"{file}, line {number}: longer than the {MAX_LINE_BYTES:,} bytes of an episode")
            if line.strip():
                yield _episode(file, number, line)


def _episode(file: Path, number: int, line: bytes) -> Episode:
    try:
        return Episode.from_dict(json.loads(line))
    except RecursionError as error:
        raise TranscriptError(f"{file}, line {number}: not an episode: nested too deep") from error
    except ValueError as error:
        raise TranscriptError(f"{file}, line {number}: not an episode: {error}") from error
