"""What a split holds, in a form that two machines can compare: task ids, counts by type, hashes."""

from __future__ import annotations

import functools
import hashlib
import json
from collections import Counter
from dataclasses import asdict, dataclass
from importlib import resources
from typing import Any

from skillc_gym.envs.alfworld.data.game_set import GameSet
from skillc_gym.envs.alfworld.tasks import SHORT_NAMES, TASK_TYPES, split_of
from skillc_gym.errors import InvalidGameError


@dataclass(frozen=True)
class Manifest:
    """A split's content.

    Attributes:
        split: Name of the split.
        tasks: Number of tasks.
        by_type: Number of tasks per type, by short name.
        ids_sha256: Hash of the sorted task ids, one per line.
        sha256: Hash of every task id and of the content of its file.
    """

    split: str
    tasks: int
    by_type: dict[str, int]
    ids_sha256: str
    sha256: str

    @property
    def official(self) -> bool:
        """Whether it is one of ALFWorld's own splits, whole and unchanged."""
        return official_manifests().get(self.split) == self

    def to_json(self) -> dict[str, Any]:
        """The manifest as JSON-able values."""
        return asdict(self)


def manifest_of(games: GameSet) -> Manifest:
    """Reads a game set's manifest; every file is read once.

    Args:
        games: From :func:`skillc_gym.envs.alfworld.data.games.open_games`, or ``env.unwrapped.games``.
    """
    counts = Counter(games.task_type(task_id) for task_id in games.task_ids)
    lines = "".join(f"{task_id}\n" for task_id in games.task_ids)
    return Manifest(
        split=split_of(games.task_ids[0]),
        tasks=len(games.task_ids),
        by_type={SHORT_NAMES[kind]: counts[kind] for kind in TASK_TYPES},
        ids_sha256=hashlib.sha256(lines.encode()).hexdigest(),
        sha256=games.manifest_sha256,
    )


def require_official(games: GameSet) -> Manifest:
    """Returns the manifest of one of ALFWorld's own splits.

    Raises:
        InvalidGameError: It is not whole, or not unchanged; the message says in what it differs.
    """
    found = manifest_of(games)
    known = official_manifests().get(found.split)
    if known == found:
        return found
    differing = [name for name, value in asdict(found).items() if known is None or value != getattr(known, name)]
    expected = "nothing of that name" if known is None else f"{known.tasks} tasks, sha256 {known.sha256[:12]}"
    raise InvalidGameError(
        f"The split {found.split!r} is not ALFWorld's: {found.tasks} tasks, sha256 {found.sha256[:12]}, where "
        f"{expected} is known (differs in {', '.join(differing)}). Fetch the games again, or report them as your own."
    )


@functools.cache
def official_manifests() -> dict[str, Manifest]:
    """The manifests of ALFWorld's splits (json_2.1.1, with the tasks that upstream leaves out left out)."""
    text = (resources.files(__package__) / "manifests.json").read_text(encoding="utf-8")
    return {split: Manifest(**values) for split, values in json.loads(text).items()}
