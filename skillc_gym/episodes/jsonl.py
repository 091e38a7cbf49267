"""Episodes as JSON lines: one episode a line, files that are whole or not there."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

from skillc_gym.episodes.record import Episode
from skillc_gym.errors import MissingDataError, TranscriptError

__all__ = ["read_jsonl", "write_jsonl"]


def write_jsonl(path: str | os.PathLike[str], episodes: Iterable[Episode]) -> Path:
    """Writes episodes, replacing the file at once: a reader never sees half of it, nor does a run cut short leave half.

    Args:
        path: The file; its folder is made.
        episodes: What to write; consumed before the file is touched.

    Returns:
        The path.
    """
    target = Path(path)
    # ASCII escapes keep whatever a model wrote (lone surrogates, line separators) on one readable line.
    text = "".join(json.dumps(episode.to_dict()) + "\n" for episode in episodes)
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with draft.open("w", encoding="ascii", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
    return target


def read_jsonl(path: str | os.PathLike[str]) -> list[Episode]:
    """Reads episodes back, equal to those written.

    Raises:
        MissingDataError: There is no such file.
        TranscriptError: A line is not an episode; the message names the line.
    """
    file = Path(path)
    if not file.is_file():
        raise MissingDataError(f"No transcript {file}; expected a .jsonl file that write_jsonl wrote")
    return [
        _episode(file, number, line) for number, line in enumerate(file.read_bytes().split(b"\n"), 1) if line.strip()
    ]


def _episode(file: Path, number: int, line: bytes) -> Episode:
    try:
        return Episode.from_dict(json.loads(line))
    except (ValueError, TypeError) as error:
        raise TranscriptError(f"{file}, line {number}: not an episode: {error}") from error
