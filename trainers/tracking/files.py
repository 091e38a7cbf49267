"""What a run leaves on the disk: JSON that is read in bounds, folders of weights that are whole or not there."""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from skill_library import read_bounded
from skill_library.errors import brief
from skillc_gym.errors import StorageError
from skillc_gym.files import replace_file, storing, sync_folder

MAX_OBJECT_BYTES = 67_108_864
MAX_LINE_BYTES = 4_194_304
MAX_STEP = 10**12


def read_object(path: Path) -> dict[str, Any]:
    """Reads a file that holds one JSON object; a ValueError or an OSError if there is none, or it may not be read."""
    return parse_object(read_bounded(path, MAX_OBJECT_BYTES))


def parse_object(content: bytes) -> dict[str, Any]:
    """Reads one JSON object; a ValueError says what else it is."""
    try:
        found = json.loads(content)
    except RecursionError as error:
        raise ValueError("its JSON is nested too deep") from error
    if not isinstance(found, dict):
        raise ValueError(f"expected a JSON object, got {brief(found)}")
    return found


def iter_records(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a ``metrics.jsonl``: its lines that are objects with a ``step``.

    Others (cut off by a kill, overwritten, too long) take no valid one with them.
    """
    with path.open("rb") as stream:
        yield from filter(None, map(_record, iter(lambda: stream.readline(MAX_LINE_BYTES + 1), b"")))


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        found = parse_object(line)
    except ValueError:
        return None
    step = found.get("step")
    return found if type(step) is int and 0 <= step < MAX_STEP else None


def write_json(path: Path, value: Mapping[str, Any] | Sequence[Any]) -> None:
    """Writes a JSON file whole or not at all (StorageError); numbers that are not finite become null."""
    replace_file(path, [(json.dumps(_finite(value), indent=1) + "\n").encode("ascii")])


def json_line(record: Mapping[str, Any]) -> bytes:
    """An object as one line; numbers may be of numpy or torch, and those that are not finite become null."""
    return json.dumps(_finite(record)).encode("ascii") + b"\n"


def _finite(value: Any) -> Any:
    if getattr(value, "shape", None) == ():  # a number of numpy or torch
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value


# Folders of weights --------------------------------------------------------------------------------------------------


# What torch's RuntimeError and safetensors' exception say of a disk that refuses.
_WRITERS_SIGNS = ("PytorchStreamWriter", "inline_container", "iostream error", "file write failed", "I/O error")

NO_WEIGHTS = hashlib.sha256().hexdigest()
"""What stands for the weights of a model that is not here, as on a server."""


def sha256_of_file(path: Path) -> str:
    """Hex digest of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def weights_sha256(folder: Path) -> str:
    """Hash of a folder's weights, over the hashes of its files; :data:`NO_WEIGHTS` where it has none."""
    weights = hashlib.sha256()
    for path in sorted(folder.glob("*.safetensors")) or sorted(folder.glob("pytorch_model*.bin")):
        weights.update(bytes.fromhex(sha256_of_file(path)))
    return weights.hexdigest()


def seal(folder: Path) -> dict[str, str]:
    """Syncs all files of a folder to the disk; gives their SHA-256 in hexadecimal, by their path below it."""
    digests = {}
    with storing(folder):
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            with path.open("rb") as file:
                os.fsync(file.fileno())
            digests[path.relative_to(folder).as_posix()] = sha256_of_file(path)
        for inner in sorted(entry for entry in folder.rglob("*") if entry.is_dir()):
            sync_folder(inner)
        sync_folder(folder)
    return digests


def damage(folder: Path, digests: Any) -> str | None:
    """What is wrong with a folder's files, in words; None if they are those that :func:`seal` hashed."""
    if not isinstance(digests, Mapping) or not all(isinstance(digest, str) for digest in digests.values()):
        return f"its list of files is damaged ({brief(digests)})"
    for name, digest in digests.items():
        path = folder / name
        if not path.is_file() or not path.resolve().is_relative_to(folder.resolve()):
            return f"{brief(name)} is missing"
        if sha256_of_file(path) != digest:
            return f"{name} is not what was written"
    return None


def swap_folder(new: Path, final: Path) -> None:
    """Puts a sealed folder into its place; :func:`recover_folder` mends an interruption in between."""
    old = _aside(final)
    with storing(final):
        remove(old)
        if final.exists():
            final.rename(old)
        new.rename(final)
        sync_folder(final.parent)
        remove(old)


def recover_folder(final: Path) -> None:
    """Puts back the folder that a swap had moved aside when it was interrupted."""
    old = _aside(final)
    if old.is_dir() and not old.is_symlink():
        if final.exists():
            remove(old)
        else:
            old.rename(final)


def remove(path: Path) -> None:
    """Removes a folder with all that is in it; of a link, the link alone."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.exists():
        shutil.rmtree(path)


@contextmanager
def storing_weights(path: Path) -> Iterator[None]:
    """As :func:`~skillc_gym.files.storing`, for libraries that tell of a full disk by errors of their own."""
    try:
        with storing(path):
            yield
    except Exception as error:
        if any(sign in str(error) for sign in _WRITERS_SIGNS):
            raise StorageError(f"{path} cannot be written; the disk may be full ({error}).") from error
        raise


def _aside(final: Path) -> Path:
    return final.with_name(f".old-{final.name}")
