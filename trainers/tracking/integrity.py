"""Folders of weights that are whole or not there: synced, hashed, swapped into place, checked when they are read."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from skill_library.errors import brief
from skillc_gym.errors import StorageError
from skillc_gym.files import storing, sync_folder

__all__ = ["Digests", "damage", "recover_folder", "remove", "seal", "storing_weights", "swap_folder"]

_WRITERS_SIGNS = ("PytorchStreamWriter", "inline_container", "iostream error", "file write failed", "I/O error")
"""What torch's RuntimeError and safetensors' exception say of a disk that refuses."""

Digests = dict[str, str]
"""SHA-256 of a folder's files in hexadecimal, by their path below it."""


def seal(folder: Path) -> Digests:
    """Syncs all files of a folder to the disk and hashes them.

    Raises:
        StorageError: The disk refuses.
    """
    digests = {}
    with storing(folder):
        for path in _files(folder):
            with path.open("rb") as file:
                os.fsync(file.fileno())
                digests[path.relative_to(folder).as_posix()] = hashlib.file_digest(file, "sha256").hexdigest()
        for inner in sorted(entry for entry in folder.rglob("*") if entry.is_dir()):
            sync_folder(inner)
        sync_folder(folder)
    return digests


def damage(folder: Path, digests: Any) -> str | None:
    """What is wrong with a folder's files, in words; None if they are those that were hashed.

    Args:
        folder: The folder.
        digests: What :func:`seal` gave, as read back.
    """
    if not isinstance(digests, Mapping) or not all(isinstance(digest, str) for digest in digests.values()):
        return f"its list of files is damaged ({brief(digests)})"
    for name, digest in digests.items():
        path = folder / name
        if not path.is_file() or not path.resolve().is_relative_to(folder.resolve()):
            return f"{brief(name)} is missing"
        with path.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != digest:
                return f"{name} is not what was written"
    return None


def swap_folder(new: Path, final: Path) -> None:
    """Puts a sealed folder into its place; :func:`recover_folder` mends an interruption in between.

    Raises:
        StorageError: It cannot be moved.
    """
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


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _aside(final: Path) -> Path:
    return final.with_name(f".old-{final.name}")
