"""Where game files lie: a folder in upstream's layout, or an archive of one, read without unpacking it.

A source gives the bytes of each game file of one split by task id. An archive is read once, front to back; its games
are kept compressed, and what they share with the first of them (the domain, the grammar) takes next to no space.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import re
import time
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from skill_library import read_bounded
from skillc_gym.envs.alfworld.data.archives import archive_files
from skillc_gym.envs.alfworld.tasks import SHORT_NAMES
from skillc_gym.errors import InvalidGameError, MissingDataError

GAME_FILE = "game.tw-pddl"
LAYOUT = "json_2.1.1/<split>/<task folder>/<trial folder>/game.tw-pddl"
FETCH = (
    "Get the games with `pip install alfworld && alfworld-download`, point ALFWORLD_DATA (or data=) at the folder or "
    "archive that holds json_2.1.1, or play generated ones with data='generated'."
)
MAX_GAME_BYTES = 2_000_000
"""How large a game file may be; ALFWorld's largest has 135,000 bytes."""
MAX_FOLDERS = 100_000
MAX_KEPT_BYTES = 100_000_000
"""Of one split, packed; ALFWorld's largest takes 22,000,000."""
SHARED_BYTES = 32_000
"""How much of the first game the others are packed with; zlib looks no further back, and the domain and the grammar of
ALFWorld's games end just before."""
_RECENTLY = 3600
"""Seconds that unpacking may take."""
_SOLVABLE = re.compile(rb'"solvable"\s*:\s*(true|false|null)')


class FolderSource:
    """Games in a folder ``.../json_2.1.1/<split>``; files are read when they are asked for."""

    def __init__(self, root: Path, split: str) -> None:
        self._root = _layout_root(root, split)
        self._filling = _recently_changed(_folders(self._root / split, iter(range(MAX_FOLDERS))))
        files = {"/".join((split, *path.parts[-3:-1])): path for path in _game_files(self._root / split)}
        playable = {name: files[name] for name in sorted(files) if _is_playable(name)}
        found = {name: path for name, path in playable.items() if os.path.lexists(path)}
        self._awaited = [playable[name] for name in playable.keys() - found.keys()]
        _require_printable(found.values())
        written = {path: _written(path) for path in found.values()}  # before they are looked into
        verdicts = {name: _solvable_file(path) for name, path in found.items()}
        self._paths = {name: path for name, path in found.items() if verdicts[name] is not False}
        damaged = {found[name] for name, verdict in verdicts.items() if verdict is None}
        left_out = [found[name] for name, verdict in verdicts.items() if verdict is False]
        self._doubtful = {path: written[path] for path in damaged | _recently_changed(left_out).keys()}
        self.task_ids = tuple(self._paths)

    def has_grown(self) -> bool:
        """Whether task or trial folders have got games since, as while they are unpacked, or games are others."""
        return (
            any(map(os.path.lexists, self._awaited))
            or any(_changed(task) != at for task, at in self._filling.items())
            or any(_written(path) != at for path, at in self._doubtful.items())
        )

    def read(self, task_id: str) -> bytes:
        """Returns the content of a game file of this split."""
        try:
            return read_bounded(self._paths[task_id], MAX_GAME_BYTES)
        except OSError as error:
            raise InvalidGameError(str(error)) from error

    def state_of(self, task_id: str) -> tuple[int, ...]:
        """What changes when a game file is written again; nothing of one that is not there, or of no such task."""
        path = self._paths.get(task_id)
        return () if path is None else _written(path)

    def where(self, task_id: str) -> str:
        """Says where a game lies, for messages."""
        return str(self._paths[task_id])


class ArchiveSource:
    """Games in a ``.tar``, ``.tar.xz``, ``.tar.gz``, ``.tar.bz2`` or ``.zip`` archive."""

    def __init__(self, archive: Path, split: str) -> None:
        self._archive = archive
        self._packed: dict[str, bytes] = {}
        self._shared = b""
        kept = 0
        try:
            for path, content in archive_files(archive, lambda path: _is_wanted(path, split), max_bytes=MAX_GAME_BYTES):
                if _is_solvable(content) is not False:
                    kept += self._keep(_task_id(path), content)
                if kept > MAX_KEPT_BYTES:
                    raise InvalidGameError(f"The archive {archive} holds games of more than {MAX_KEPT_BYTES:,} bytes.")
        except InvalidGameError as error:
            raise InvalidGameError(f"{error} {FETCH}") from error
        self.task_ids = tuple(sorted(self._packed))

    def _keep(self, task_id: str, content: bytes) -> int:
        if task_id in self._packed:
            raise InvalidGameError(f"The archive {self._archive} holds {task_id} twice.")
        self._shared = self._shared or content[:SHARED_BYTES]
        packer = zlib.compressobj(3, zdict=self._shared)  # from level 3 on it finds what is shared, and is fast
        self._packed[task_id] = packer.compress(content) + packer.flush()
        return len(self._packed[task_id])

    def read(self, task_id: str) -> bytes:
        """Returns the content of a game file of this split."""
        return zlib.decompressobj(zdict=self._shared).decompress(self._packed[task_id])

    def has_grown(self) -> bool:
        """No: what was read stays, and another archive is another source."""
        return False

    def state_of(self, task_id: str) -> tuple[int, ...]:
        """Nothing: what was read stays."""
        return ()

    def where(self, task_id: str) -> str:
        """Says where a game lies, for messages."""
        return f"{self._archive}:{task_id}"


Source = FolderSource | ArchiveSource


def open_source(path: Path, split: str) -> Source:
    """Opens a folder or an archive; MissingDataError for no game of the split, InvalidGameError for a bad archive."""
    source = FolderSource(path, split) if path.is_dir() else ArchiveSource(path, split)
    if not source.task_ids:
        raise MissingDataError(f"{path} holds no game of the split {split!r}; expected {LAYOUT}. {FETCH}")
    return source


def stamp_of(path: Path, split: str) -> tuple[object, ...]:
    """What changes when task folders come or go, or an archive is another one; one look, as every environment asks."""
    place = _layout_root(path, split) / split if path.is_dir() else path
    try:
        found = place.stat()
    except OSError as error:
        raise InvalidGameError(f"Games cannot be read: {error}.") from error
    return place, found.st_mtime_ns, found.st_size


def _layout_root(root: Path, split: str) -> Path:
    for place in (root / "json_2.1.1", root):
        if (place / split).is_dir():
            return place
    raise MissingDataError(f"No folder {split!r} under {root} or {root / 'json_2.1.1'}; expected {LAYOUT}. {FETCH}")


def _is_playable(task_id: str) -> bool:
    """Leaves out what upstream leaves out: tasks with movable containers or sliced objects."""
    folder = task_id.split("/")[1]
    return "movable" not in task_id and "Sliced" not in task_id and folder.split("-", 1)[0] in SHORT_NAMES


def _game_files(folder: Path) -> Iterator[Path]:
    """Where the games of the folders two down are, or would be, among a bounded number of folders."""
    budget = iter(range(MAX_FOLDERS))
    for task in _folders(folder, budget):
        for trial in _folders(task, budget):
            yield trial / GAME_FILE


def _recently_changed(places: Iterable[Path]) -> dict[Path, float]:
    """When each was changed, if lately: others are not being unpacked, and to look at each would cost milliseconds."""
    since = time.time() - _RECENTLY
    return {place: at for place in places if (at := _changed(place)) > since}


def _changed(place: Path) -> float:
    try:
        return place.stat().st_ctime
    except OSError:
        return math.inf


def _require_printable(files: Iterable[Path]) -> None:
    for *place, task, trial, _ in (path.parts for path in files):
        if not f"{task}{trial}".isprintable():
            raise InvalidGameError(f"{(task, trial)!a} under {Path(*place)} are names that cannot be printed.")


def _folders(folder: Path, budget: Iterator[int]) -> Iterator[Path]:
    try:
        with os.scandir(folder) as found:
            entries = [(Path(entry.path), entry.is_dir()) for entry in itertools.islice(found, MAX_FOLDERS + 1)]
    except OSError as error:
        raise InvalidGameError(f"A folder of games cannot be read: {error}.") from error
    for path, is_folder in entries:
        if next(budget, None) is None:
            raise InvalidGameError(f"{folder} and the folders beside it hold more than {MAX_FOLDERS:,} entries.")
        if is_folder:
            yield path


def _written(path: Path) -> tuple[int, ...]:
    """What changes when a file is written again; nothing of one that is not there."""
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_mtime_ns, found.st_size


def _solvable_file(path: Path) -> bool | None:
    """Whether a file says that it can be won; None of one that cannot be read, which is found out when it is loaded."""
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(-min(4096, size), os.SEEK_END)
            tail = file.read(4096)
        return _is_solvable(tail if _SOLVABLE.search(tail) else read_bounded(path, MAX_GAME_BYTES))
    except OSError:
        return None


def _is_solvable(content: bytes) -> bool | None:
    """Whether the file says that it can be won; None of a damaged one, which is found out when it is loaded."""
    if found := _SOLVABLE.findall(content):
        return bool(found[-1] == b"true")
    try:
        decode(content, "")
    except InvalidGameError:
        return None
    return False  # upstream skips a game that says nothing of it


def _is_wanted(path: str, split: str) -> bool:
    parts = PurePosixPath(path).parts
    return len(parts) >= 4 and parts[-1] == GAME_FILE and parts[-4] == split and _is_playable(_task_id(path))


def _task_id(path: str) -> str:
    return "/".join(PurePosixPath(path).parts[-4:-1])


def decode(content: bytes, where: str) -> dict[str, object]:
    """Reads a game file's JSON object; InvalidGameError, with the file's name, for anything else."""
    try:
        raw = json.loads(content.decode("utf-8"), object_pairs_hook=_object, parse_constant=_no_number)
        # Half a surrogate pair can be written in JSON, but not said.
        json.dumps(raw, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError) as error:
        raise InvalidGameError(f"{where} is not a game file: its JSON cannot be read ({error!s:.200}).") from error
    if not isinstance(raw, dict):
        raise InvalidGameError(f"{where} is not a game file: it holds a JSON {type(raw).__name__}, not an object.")
    return raw


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"the key {name!r:.80} is there twice")
        found[name] = value
    return found


def _no_number(name: str) -> object:
    raise ValueError(f"{name} is not a number of JSON")
