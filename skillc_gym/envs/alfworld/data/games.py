"""Opening games: where they lie, one set per split, shared by all environments of a process."""

from __future__ import annotations

import functools
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from skillc_gym.envs.alfworld.data.game_set import FileGames, GameSet
from skillc_gym.envs.alfworld.data.sources import FETCH, Source, open_source, stamp_of
from skillc_gym.envs.alfworld.tasks import SPLITS, resolve_task_types
from skillc_gym.errors import ConfigError, MissingDataError, require_name

DATA_VARIABLE = "ALFWORLD_DATA"
GENERATED = "generated"
GENERATOR_OPTIONS = (
    *("seed", "games_per_type", "size", "scenes", "mix", "difficulty"),
    *("receptacles", "objects", "closed", "hidden", "spares", "rooms", "convention"),
)


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
        SkillCError: An unknown name, missing games (the message says what to do), a bad archive, or options that clash.
    """
    require_name("split", split, SPLITS)
    types = resolve_task_types(task_types)
    if data == GENERATED:
        return _generated_games(split, types, _generator_options({} if generator is None else generator))
    if generator is not None:
        raise ConfigError(f"generator= goes with data='generated'; data is {data!r}.")
    path = data_path(data)
    stamp = stamp_of(Path(path), split)
    if _source(path, split, stamp, _grown[path, split]).has_grown():
        _grown[path, split] += 1
    games = _file_games(path, split, types, stamp, _grown[path, split])
    if not games.task_ids:
        raise MissingDataError(f"{path} has no task of the types {', '.join(types)} in the split {split!r}.")
    return games


def data_path(data: str | os.PathLike[str] | None) -> str:
    """Returns the folder or archive that ``data`` means; if empty, ALFWORLD_DATA or the cache; MissingDataError."""
    named = os.environ.get(DATA_VARIABLE)
    path = Path(data or named or "~/.cache/alfworld")
    with suppress(OSError, RuntimeError):  # of a name that is too long, or a user whose home is not known
        path = path.expanduser().absolute()
        if path.exists():
            return str(path)
    if data:
        raise MissingDataError(f"No ALFWorld games at {path}: there is no such file or folder. {FETCH}")
    why = f"{DATA_VARIABLE}={named}" if named else f"{DATA_VARIABLE} is not set and {path}"
    raise MissingDataError(f"No ALFWorld games: {why} does not exist. {FETCH}")


_grown = Counter[tuple[str, str]]()
"""How often the split of a folder had more games when it was opened again; what is remembered is of one such number."""


@functools.lru_cache(maxsize=16)
def _source(path: str, split: str, stamp: tuple[object, ...], grown: int) -> Source:
    return open_source(Path(path), split)


@functools.lru_cache(maxsize=64)
def _file_games(path: str, split: str, task_types: tuple[str, ...], stamp: tuple[object, ...], grown: int) -> FileGames:
    return FileGames(_source(path, split, stamp, grown), task_types)


def _generator_options(generator: Mapping[str, Any]) -> str:
    if not isinstance(generator, Mapping):
        raise ConfigError(f"generator= is a dictionary such as {{'size': 'small'}}; got {generator!r}.")
    for name in generator:
        require_name("option of the generator", name, GENERATOR_OPTIONS)
    try:
        return json.dumps(dict(generator), sort_keys=True)
    except TypeError as error:
        raise ConfigError(f"The generator's options are numbers and names; got {dict(generator)!r}.") from error


@functools.lru_cache(maxsize=64)
def _generated_games(split: str, task_types: tuple[str, ...], options: str) -> GameSet:
    from skillc_gym.envs.alfworld.generate import GeneratedGames

    return GeneratedGames(split=split, task_types=task_types, **json.loads(options))
