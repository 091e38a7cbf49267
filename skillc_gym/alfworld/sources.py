"""Where game files lie: a folder in upstream's layout, or an archive of one, read without unpacking it.

A source gives the bytes of each game file of one split by task id. An archive is read once, front to back; its games
are kept compressed, with the domain and the grammar that they share kept once.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import re
import tarfile
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from skillc_gym.alfworld.tasks import SHORT_NAMES, SPLITS
from skillc_gym.errors import InvalidGameError, MissingDataError, unknown_name

__all__ = ["ArchiveSource", "FolderSource", "Source", "open_source"]

GAME_FILE = "game.tw-pddl"
LAYOUT = "json_2.1.1/<split>/<task folder>/<trial folder>/game.tw-pddl"
FETCH = (
    "Get the games with `pip install alfworld && alfworld-download`, point ALFWORLD_DATA (or data=) at the folder or "
    "archive that holds json_2.1.1, or play generated ones with data='generated'."
)
MAX_GAME_BYTES = 8_000_000
_CORRUPT = (tarfile.TarError, lzma.LZMAError, zipfile.BadZipFile, zlib.error, EOFError, OSError, UnicodeDecodeError)
_SOLVABLE = re.compile(rb'"solvable"\s*:\s*(true|false)')


class Source(ABC):
    """The game files of one split."""

    task_ids: tuple[str, ...]

    @abstractmethod
    def read(self, task_id: str) -> bytes:
        """Returns the content of a game file of this split."""

    @abstractmethod
    def where(self, task_id: str) -> str:
        """Says where a game lies, for messages."""

    @abstractmethod
    def digest(self, task_id: str) -> str:
        """Returns the sha256 of a game file's content."""


class FolderSource(Source):
    """Games in a folder ``.../json_2.1.1/<split>``; files are read when they are asked for."""

    def __init__(self, root: Path, split: str) -> None:
        self._root = _layout_root(root, split)
        files = (self._root / split).glob(f"*/*/{GAME_FILE}")
        found = (("/".join((split, *path.parts[-3:-1])), path) for path in files)
        self._paths = {name: path for name, path in sorted(found) if _is_playable(name) and _solvable_file(path)}
        self.task_ids = tuple(self._paths)

    def read(self, task_id: str) -> bytes:
        """Returns the content of a game file of this split."""
        return self._paths[task_id].read_bytes()

    def where(self, task_id: str) -> str:
        """Says where a game lies, for messages."""
        return str(self._paths[task_id])

    def digest(self, task_id: str) -> str:
        """Returns the sha256 of a game file's content."""
        return hashlib.sha256(self.read(task_id)).hexdigest()


class ArchiveSource(Source):
    """Games in a ``.tar``, ``.tar.xz``, ``.tar.gz``, ``.tar.bz2`` or ``.zip`` archive."""

    def __init__(self, archive: Path, split: str) -> None:
        self._archive = archive
        self._packed: dict[str, tuple[bytes, ...]] = {}
        self._digests: dict[str, str] = {}
        shared: dict[bytes, bytes] = {}
        try:
            for name, content in _members(archive, split):
                if _is_playable(name) and _is_solvable(content):
                    self._packed[name] = _pack(content, shared)
                    self._digests[name] = hashlib.sha256(content).hexdigest()
        except _CORRUPT as error:
            raise InvalidGameError(
                f"The archive {archive} cannot be read ({type(error).__name__}: {error}); it may be cut off or be no "
                f"archive at all. {FETCH}"
            ) from error
        self.task_ids = tuple(sorted(self._packed))

    def read(self, task_id: str) -> bytes:
        """Returns the content of a game file of this split."""
        *plain, rest = self._packed[task_id]
        return b"".join((*plain, zlib.decompress(rest)))

    def where(self, task_id: str) -> str:
        """Says where a game lies, for messages."""
        return f"{self._archive}:{task_id}"

    def digest(self, task_id: str) -> str:
        """Returns the sha256 of a game file's content."""
        return self._digests[task_id]


def open_source(path: Path, split: str) -> Source:
    """Opens a folder or an archive.

    Raises:
        MissingDataError: If there is nothing at the path, or no game of the split in it.
        InvalidGameError: If the archive cannot be read.
    """
    if not path.exists():
        raise MissingDataError(f"No ALFWorld games at {path}: there is no such file or folder. {FETCH}")
    source = FolderSource(path, split) if path.is_dir() else ArchiveSource(path, split)
    if not source.task_ids:
        raise MissingDataError(f"{path} holds no game of the split {split!r}; expected {LAYOUT}. {FETCH}")
    return source


def _layout_root(root: Path, split: str) -> Path:
    if split not in SPLITS:
        raise unknown_name("split", split, SPLITS)
    for place in (root / "json_2.1.1", root):
        if (place / split).is_dir():
            return place
    raise MissingDataError(f"No folder {split!r} under {root} or {root / 'json_2.1.1'}; expected {LAYOUT}. {FETCH}")


def _is_playable(task_id: str) -> bool:
    """Leaves out what upstream leaves out: tasks with movable containers or sliced objects."""
    folder = task_id.split("/")[1]
    return "movable" not in task_id and "Sliced" not in task_id and folder.split("-", 1)[0] in SHORT_NAMES


def _solvable_file(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-min(4096, path.stat().st_size), 2)
        tail = file.read()
    return _is_solvable(tail if _SOLVABLE.search(tail) else path.read_bytes())


def _is_solvable(content: bytes) -> bool:
    """Whether the file says that it can be won; a file that says nothing is left to be found out when it is loaded."""
    found = _SOLVABLE.findall(content)
    return not found or found[-1] == b"true"


def _members(archive: Path, split: str) -> Iterator[tuple[str, bytes]]:
    if zipfile.is_zipfile(archive):
        yield from _zip_members(archive, split)
        return
    with tarfile.open(archive, "r|*") as tar:
        for member in tar:
            task_id = _task_id(member.name, split) if member.isfile() else None
            if task_id is not None:
                _check_size(archive, member.name, member.size)
                file = tar.extractfile(member)
                yield task_id, file.read() if file else b""


def _zip_members(archive: Path, split: str) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(archive) as zipped:
        for info in zipped.infolist():
            task_id = _task_id(info.filename, split)
            if task_id is not None:
                _check_size(archive, info.filename, info.file_size)
                yield task_id, zipped.read(info)


def _task_id(name: str, split: str) -> str | None:
    parts = PurePosixPath(name).parts
    inside = len(parts) >= 4 and parts[-1] == GAME_FILE and parts[-4] == split
    return "/".join(parts[-4:-1]) if inside else None


def _check_size(archive: Path, name: str, size: int) -> None:
    if size > MAX_GAME_BYTES:
        raise InvalidGameError(f"{archive} holds {name} of {size:,} bytes; a game has at most {MAX_GAME_BYTES:,}.")


_CUTS = (b'"grammar": "', b"Your task is to: ", b'"', b'"pddl_problem": "')
"""Where a file is cut, in this order: before each cut stands what many games share."""


def _pack(content: bytes, shared: dict[bytes, bytes]) -> tuple[bytes, ...]:
    """Splits off what games share (one object for all of them) and compresses the rest."""
    plain, rest = [], content
    for cut in _CUTS:
        before, found, after = rest.partition(cut)
        if found:
            plain.append(shared.setdefault(before + found, before + found))
            rest = after
    return (*plain, zlib.compress(rest, 1))


def decode(content: bytes, where: str) -> dict[str, object]:
    """Reads a game file's JSON.

    Raises:
        InvalidGameError: If it is not a JSON object; names the file.
    """
    try:
        raw = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InvalidGameError(f"{where} is not a game file: its JSON cannot be read ({error}).") from error
    if not isinstance(raw, dict):
        raise InvalidGameError(f"{where} is not a game file: it holds a JSON {type(raw).__name__}, not an object.")
    return raw
