"""Episodes in files: one JSON line each, in files that are whole or not there, or in the Trajectory Format."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from skillc_gym.episodes.record import Episode, Turn
from skillc_gym.errors import MissingDataError, TranscriptError
from skillc_gym.files import replace_file
from skillc_gym.version import __version__

MAX_LINE_BYTES = 1 << 26
"""Longest line that is read, an episode as JSON: 50 replies of 65,536 characters, at up to 12 bytes each as escapes."""


def write_jsonl(path: str | os.PathLike[str], episodes: Iterable[Episode]) -> Path:
    """Writes episodes one by one, replacing the file at once: nobody ever sees half of it. Returns the path.

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


def to_atif(episode: Episode, model: str | None = None) -> dict[str, Any]:
    """An episode as a JSON-able trajectory, with the ``model`` that played it, where that is known.

    The first prompt is a system and a user step, each exchange an agent step: the reply verbatim, the executed command
    as a call of the tool ``act``, and what the environment said to it. All the rest is in the trajectory's ``extra``.
    """
    first = episode.turns[0].observation if episode.turns else episode.final_observation
    opening = episode.messages or [{"role": "user", "content": first}]
    steps: list[dict[str, Any]] = [
        {"source": "agent" if said["role"] == "assistant" else said["role"], "message": said["content"]}
        for said in opening
    ]
    heard = [turn.observation for turn in episode.turns[1:]] + [episode.final_observation]
    steps += [_exchange(number, turn, heard[number]) for number, turn in enumerate(episode.turns)]
    told = {name: value for name, value in episode.to_dict().items() if name not in _SHOWN}
    return {
        "schema_version": "ATIF-v1.7",
        "session_id": f"{episode.group_id}/{episode.task_id}/{episode.seed}/{episode.condition}",
        "agent": {"name": "skillc-gym", "version": __version__, **({"model_name": model} if model else {})},
        "steps": [{"step_id": number, **step} for number, step in enumerate(steps, 1)],
        "final_metrics": {"total_steps": len(steps)},
        "extra": {**told, "episode_return": episode.episode_return},
    }


def _exchange(number: int, turn: Turn, answer: str) -> dict[str, Any]:
    call = f"call-{number + 1}"
    return {
        "source": "agent",
        "message": turn.reply,
        "tool_calls": [{"tool_call_id": call, "function_name": "act", "arguments": {"command": turn.action}}],
        "observation": {"results": [{"source_call_id": call, "content": answer}]},
        "extra": {"format_valid": turn.format_valid, "action_valid": turn.action_valid, "reward": turn.reward},
    }


_SHOWN = ("turns", "messages", "final_observation")
"""Fields of an episode that stand in the steps."""
