"""Sets of games: what a split holds, by task id, the parsed games that all environments share, and manifests."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
from abc import ABC, abstractmethod
from collections import Counter, OrderedDict
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from skillc_gym.envs.alfworld.data.sources import Source, decode
from skillc_gym.envs.alfworld.engine.game import Game
from skillc_gym.envs.alfworld.tasks import SHORT_NAMES, TASK_TYPES, resolve_task_types, task_type_of
from skillc_gym.errors import InvalidGameError, require_name
from skillc_gym.pages import resource

LOADED_GAMES = 256
"""How many parsed games a set keeps; the least recently used one goes first."""


class GameSet(ABC):
    """The games of a split: subclasses give `raw` and `manifest_sha256`; what is loaded is kept here.

    Attributes:
        task_ids: The ids of all tasks, sorted; the order does not depend on the machine.
    """

    def __init__(self, task_ids: Iterable[str]) -> None:
        self.task_ids = tuple(sorted(task_ids))
        self._known = dict.fromkeys(self.task_ids)
        self._loaded: OrderedDict[tuple[str, int | None, tuple[int, ...]], Game] = OrderedDict()

    @abstractmethod
    def raw(self, task_id: str) -> dict[str, Any]:
        """Returns the content of a game file: pddl_domain, grammar, pddl_problem, walkthrough, solvable."""

    @property
    @abstractmethod
    def manifest_sha256(self) -> str:
        """A hash of what the set holds."""

    def contents_sha256(self, task_ids: Iterable[str]) -> str:
        """A hash of these tasks' ids and of their games, free of layout; every one of them is read."""
        found = hashlib.sha256()
        for task_id in task_ids:
            content = json.dumps(self.raw(task_id), sort_keys=True)
            found.update(f"{task_id}\n{content}\n".encode())
        return found.hexdigest()

    def load(self, task_id: str, naming: int | None = None) -> Game:
        """Returns a parsed game, from memory if it was loaded lately; for ``naming`` see `Game.renamed`."""
        key = task_id, naming, self.state_of(task_id)
        game = self._loaded.get(key)
        if game is not None:
            with contextlib.suppress(KeyError):  # another thread may have dropped it meanwhile
                self._loaded.move_to_end(key)
            return game
        game = Game.parse(task_id, self.raw(task_id)) if naming is None else self.load(task_id).renamed(naming)
        game = self._loaded.setdefault(key, game)
        if len(self._loaded) > LOADED_GAMES:
            self._loaded.popitem(last=False)
        return game

    def state_of(self, task_id: str) -> tuple[int, ...]:
        """What tells that a game has become another one meanwhile."""
        return ()

    def require(self, task_id: str) -> str:
        """Returns the task id if the set has it; UnknownNameError if not."""
        return require_name("task id", task_id, self._known, "env.unwrapped.task_ids lists them.")


class FileGames(GameSet):
    """Games from a folder or an archive in upstream's layout."""

    def __init__(self, source: Source, task_types: Iterable[str] | None = None) -> None:
        wanted = resolve_task_types(task_types)
        super().__init__(name for name in source.task_ids if task_type_of(name) in wanted)
        self._source = source
        self._manifest: tuple[object, str] | None = None

    def raw(self, task_id: str) -> dict[str, Any]:
        """Returns the content of a game file."""
        return decode(self._source.read(self.require(task_id)), self._source.where(task_id))

    def state_of(self, task_id: str) -> tuple[int, ...]:
        """What tells that a game file was written again."""
        return self._source.state_of(task_id)

    @property
    def manifest_sha256(self) -> str:
        """A hash of every task id and of the content of its file."""
        state = tuple(map(self.state_of, self.task_ids))
        if self._manifest is None or self._manifest[0] != state:
            found = hashlib.sha256()
            for task_id in self.task_ids:
                content = hashlib.sha256(self._source.read(task_id)).hexdigest()
                found.update(f"{task_id} {content}\n".encode())
            self._manifest = state, found.hexdigest()
        return self._manifest[1]


@dataclass(frozen=True)
class Manifest:
    """A split's content.

    Attributes:
        by_type: Number of tasks per type, by short name.
        ids_sha256: Hash of the sorted task ids, one per line.
        sha256: Hash of every task id and of the content of its file.
    """

    split: str
    tasks: int
    by_type: dict[str, int]
    ids_sha256: str
    sha256: str


def manifest_of(games: GameSet) -> Manifest:
    """Reads a game set's manifest; every file is read once.

    Args:
        games: From :func:`skillc_gym.envs.alfworld.data.games.open_games`, or ``env.unwrapped.games``.
    """
    counts = Counter(map(task_type_of, games.task_ids))
    lines = "".join(f"{task_id}\n" for task_id in games.task_ids)
    return Manifest(
        split=games.task_ids[0].partition("/")[0],
        tasks=len(games.task_ids),
        by_type={SHORT_NAMES[kind]: counts[kind] for kind in TASK_TYPES},
        ids_sha256=hashlib.sha256(lines.encode()).hexdigest(),
        sha256=games.manifest_sha256,
    )


def require_official(games: GameSet) -> Manifest:
    """Returns the manifest of one of ALFWorld's own splits; InvalidGameError says in what it differs from it."""
    found = manifest_of(games)
    known = official_manifests().get(found.split)
    if known == found:
        return found
    kinds = {kind: count for kind, count in found.by_type.items() if count}
    if known is not None and len(kinds) < len(TASK_TYPES) and kinds.items() <= known.by_type.items():
        raise InvalidGameError(
            f"Only tasks of the types {', '.join(kinds)} of the split {found.split!r} were opened; open it without "
            "task_types to have it checked whole."
        )
    differing = [name for name, value in asdict(found).items() if known is None or value != getattr(known, name)]
    expected = "nothing of that name" if known is None else f"{known.tasks} tasks, sha256 {known.sha256[:12]}"
    raise InvalidGameError(
        f"The split {found.split!r} is not ALFWorld's: {found.tasks} tasks, sha256 {found.sha256[:12]}, where "
        f"{expected} is known (differs in {', '.join(differing)}). Fetch the games again, or report them as your own."
    )


@functools.cache
def official_manifests() -> dict[str, Manifest]:
    """The manifests of ALFWorld's splits (json_2.1.1, with the tasks that upstream leaves out left out)."""
    known = json.loads(resource(__package__, "manifests.json"))
    return {split: Manifest(**values) for split, values in known.items()}
