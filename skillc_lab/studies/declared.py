"""The run file of a study as git has it, and whether a study was declared before its first cell began."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from skillc_gym.errors import ConfigError
from trainers.tracking import git_says


@dataclass(frozen=True)
class Declaration:
    """A run file's name and hash; the commit that gave it this content, and when in UTC, where git has it so."""

    name: str
    sha256: str
    commit: str | None = None
    committed: str | None = None


def declared_in(path: Path) -> Declaration:
    """What git can show of a file: nothing of one that is not committed as it stands there."""
    found = Declaration(path.name, sha256(path.read_bytes()).hexdigest())
    place, name = path.resolve().parent, path.resolve().name
    content = git_says(place, "hash-object", name)
    if content is None or content != git_says(place, "rev-parse", f"HEAD:./{name}"):
        return found
    commit, _, seconds = (git_says(place, "log", "-1", "--format=%H %ct", "--", name) or "").partition(" ")
    return Declaration(found.name, found.sha256, commit, _utc(datetime.fromtimestamp(int(seconds), UTC)))


def now() -> str:
    """The time in UTC."""
    return _utc(datetime.now(UTC))


def require_preregistered(declared: Declaration | None, begun: Iterable[tuple[str, str, Mapping[str, Any]]]) -> None:
    """Refuses to call a study preregistered what git cannot show.

    Every cell that has begun stands with when it did and its run file, both empty where they were not recorded.

    Raises:
        ConfigError: The file is not committed as it is, or a cell began before, or under another content.
    """
    if declared is None or declared.commit is None or declared.committed is None:
        name = declared.name if declared else "its run file"
        raise ConfigError(f"A study is preregistered once git has {name} as it is; commit it before the first cell")
    for cell, started, own in begun:
        wrong = ""
        if not started or started <= declared.committed:
            wrong = f"began {started or 'at a time that was not recorded'}, and the commit is of {declared.committed}"
        elif own.get("sha256") != declared.sha256:
            wrong = "began under another content of the file"
        if wrong:
            raise ConfigError(
                f"{declared.name} says preregistered, and {cell} {wrong}. Leave the word out, or declare what is to "
                "come in a file and a folder of its own"
            )


def preregistration(declared: Declaration | None, starts: Iterable[str]) -> dict[str, Any] | None:
    """What a record says of it: the file, its commit and when the first cell began; None without a cell."""
    first = min(starts, default=None)
    return None if declared is None or first is None else {**asdict(declared), "first_cell": first}


def _utc(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")
