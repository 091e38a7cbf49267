"""Sets of games: what a split holds, by task id, and the parsed games that all environments of a process share."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from skillc_gym.envs.alfworld.data.sources import FETCH, Source, decode, open_source
from skillc_gym.envs.alfworld.engine.game import Game
from skillc_gym.envs.alfworld.tasks import SPLITS, resolve_task_types, task_type_of
from skillc_gym.errors import ConfigError, MissingDataError, unknown_name

__all__ = ["GENERATED", "FileGames", "Game", "GameSet", "data_path", "open_games"]

DATA_VARIABLE = "ALFWORLD_DATA"
GENERATED = "generated"
GENERATOR_OPTIONS = (
    *("seed", "games_per_type", "size", "scenes", "mix", "difficulty"),
    *("receptacles", "objects", "closed", "hidden", "spares", "rooms"),
)
LOADED_GAMES = 256
"""How many parsed games a set keeps; the least recently used one goes first."""


class GameSet(ABC):
    """The games of a split.

    Subclasses give `task_ids`, `raw` and `manifest_sha256`; loading, and keeping what was loaded, is done here.
    """

    def __init__(self) -> None:
        self._loaded: OrderedDict[tuple[str, int | None], Game] = OrderedDict()

    @property
    @abstractmethod
    def task_ids(self) -> tuple[str, ...]:
        """The ids of all tasks, sorted; the order does not depend on the machine."""

    @abstractmethod
    def raw(self, task_id: str) -> dict[str, Any]:
        """Returns the content of a game file: pddl_domain, grammar, pddl_problem, walkthrough, solvable."""

    @property
    @abstractmethod
    def manifest_sha256(self) -> str:
        """A hash of what the set holds."""

    def contents_sha256(self, task_ids: Iterable[str]) -> str:
        """A hash of these tasks' ids and of their games, free of layout; every one of them is read.

        Raises:
            UnknownNameError: If the set has no such task.
        """
        found = hashlib.sha256()
        for task_id in task_ids:
            content = json.dumps(self.raw(self.require(task_id)), sort_keys=True)
            found.update(f"{task_id}\n{content}\n".encode())
        return found.hexdigest()

    def task_type(self, task_id: str) -> str:
        """Returns a task's full type."""
        return task_type_of(task_id)

    def load(self, task_id: str, naming: int | None = None) -> Game:
        """Returns a parsed game, from memory if it was loaded lately.

        Args:
            task_id: One of `task_ids`.
            naming: Numbers the game's things in another order; see `Game.renamed`.

        Raises:
            UnknownNameError: If the set has no such task.
            InvalidGameError: If its file is not an ALFWorld game.
        """
        key = task_id, naming
        game = self._loaded.get(key)
        if game is not None:
            with contextlib.suppress(KeyError):  # another thread may have dropped it meanwhile
                self._loaded.move_to_end(key)
            return game
        if naming is None:
            game = Game.parse(self.require(task_id), self.raw(task_id))
        else:
            game = self.load(task_id).renamed(naming)
        game = self._loaded.setdefault(key, game)
        if len(self._loaded) > LOADED_GAMES:
            self._loaded.popitem(last=False)
        return game

    def require(self, task_id: str) -> str:
        """Returns the task id if the set has it.

        Raises:
            UnknownNameError: If it has not.
        """
        if task_id not in self._known:
            raise unknown_name("task id", task_id, self.task_ids, "env.unwrapped.task_ids lists them.")
        return task_id

    @functools.cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.task_ids)


class FileGames(GameSet):
    """Games from a folder or an archive in upstream's layout."""

    def __init__(self, source: Source, task_types: Iterable[str] | None = None) -> None:
        super().__init__()
        self._source = source
        wanted = resolve_task_types(task_types)
        self._task_ids = tuple(name for name in source.task_ids if task_type_of(name) in wanted)

    @property
    def task_ids(self) -> tuple[str, ...]:
        """The ids of all tasks, sorted."""
        return self._task_ids

    def raw(self, task_id: str) -> dict[str, Any]:
        """Returns the content of a game file."""
        self.require(task_id)
        return decode(self._source.read(task_id), self._source.where(task_id))

    @functools.cached_property
    def manifest_sha256(self) -> str:
        """A hash of every task id and of the content of its file."""
        lines = (f"{task_id} {self._source.digest(task_id)}\n" for task_id in self._task_ids)
        return hashlib.sha256("".join(lines).encode()).hexdigest()


def open_games(
    data: str | os.PathLike[str] | None = None,
    *,
    split: str = "train",
    task_types: Iterable[str] | str | None = None,
    generator: Mapping[str, Any] | None = None,
) -> GameSet:
    """Opens the games of a split. The same arguments give the same object, so that environments share what is loaded.

    Args:
        data: A folder or an archive (.tar.xz, .zip, ...) in upstream's layout, or "generated"; None looks at the
            environment variable ALFWORLD_DATA and then at ~/.cache/alfworld.
        split: "train", "valid_seen", "valid_unseen" or "valid_train".
        task_types: Full or short names of the wanted types; None for all.
        generator: Options of the generator, with data="generated" only.

    Raises:
        UnknownNameError: If the split or a task type does not exist.
        MissingDataError: If there are no games at the place; the message says where it looked and what to do.
        InvalidGameError: If the archive cannot be read.
        ConfigError: If generator options are given with games from files, or are not what the generator takes.
    """
    if split not in SPLITS:
        raise unknown_name("split", split, SPLITS)
    types = resolve_task_types(task_types)
    if data == GENERATED:
        return _generated_games(split, types, _generator_options({} if generator is None else generator))
    if generator is not None:
        raise ConfigError(f"generator= goes with data='generated'; data is {data!r}.")
    games = _file_games(data_path(data), split, types)
    if not games.task_ids:
        raise MissingDataError(f"{data_path(data)} has no task of the types {', '.join(types)} in the split {split!r}.")
    return games


def data_path(data: str | os.PathLike[str] | None) -> str:
    """Returns the folder or archive that ``data`` means; None stands for ALFWORLD_DATA or ~/.cache/alfworld.

    Raises:
        MissingDataError: If None is given and neither place exists.
    """
    if data is not None:
        return str(Path(data).expanduser().absolute())
    named = os.environ.get(DATA_VARIABLE)
    if named:
        return _existing(Path(named), f"{DATA_VARIABLE}={named} does not exist")
    cache = Path("~/.cache/alfworld").expanduser()
    return _existing(cache, f"{DATA_VARIABLE} is not set and {cache} does not exist")


def _existing(path: Path, otherwise: str) -> str:
    path = path.expanduser().absolute()
    if not path.exists():
        raise MissingDataError(f"No ALFWorld games: {otherwise}. {FETCH}")
    return str(path)


@functools.lru_cache(maxsize=16)
def _source(path: str, split: str) -> Source:
    return open_source(Path(path), split)


@functools.lru_cache(maxsize=64)
def _file_games(path: str, split: str, task_types: tuple[str, ...]) -> FileGames:
    return FileGames(_source(path, split), task_types)


def _generator_options(generator: Mapping[str, Any]) -> str:
    if not isinstance(generator, Mapping):
        raise ConfigError(f"generator= is a dictionary such as {{'size': 'small'}}; got {generator!r}.")
    for name in generator:
        if name not in GENERATOR_OPTIONS:
            raise unknown_name("option of the generator", name, GENERATOR_OPTIONS)
    try:
        return json.dumps(dict(generator), sort_keys=True)
    except TypeError as error:
        raise ConfigError(f"The generator's options are numbers and names; got {dict(generator)!r}.") from error


@functools.lru_cache(maxsize=64)
def _generated_games(split: str, task_types: tuple[str, ...], options: str) -> GameSet:
    from skillc_gym.envs.alfworld.generate import GeneratedGames

    games: GameSet = GeneratedGames(split=split, task_types=task_types, **json.loads(options))
    return games
