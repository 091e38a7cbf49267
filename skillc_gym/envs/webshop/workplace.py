"""Folders of arrays: built next to their place by one process at a time, without leftovers of killed builds; mapped."""

from __future__ import annotations

import mmap
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

if sys.platform != "win32":
    import fcntl


@contextmanager
def work_folder(folder: Path) -> Iterator[Path]:
    """Gives an empty folder in which another one can be made, and removes it at the end if it is still there.

    Waits while another process is in the work folder of the same place. What killed ones left is removed first. Where
    there are no locks (Windows, some network file systems), two may build the same at once, which costs time only.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _lock(folder.parent / f".lock-{folder.name}") as alone:
        for left in folder.parent.glob(".building-*-*") if alone else ():
            # What `mkdtemp` draws has no hyphen: a place whose name ends or begins as this one's is another's.
            if left.name.split("-", 2)[2] == folder.name:
                shutil.rmtree(left, ignore_errors=True)
        work = Path(tempfile.mkdtemp(prefix=".building-", suffix=f"-{folder.name}", dir=folder.parent))
        try:
            yield work
        finally:
            shutil.rmtree(work, ignore_errors=True)


def publish(work: Path, folder: Path) -> None:
    """Moves a finished work folder to its place; a folder that another process put there meanwhile stays."""
    work.chmod(0o755)
    try:
        work.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise


def reserve(path: Path) -> None:
    """Claims the disk space of a file that is written through a map, where running out of it would kill the process."""
    if hasattr(os, "posix_fallocate"):
        with path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)


@contextmanager
def _lock(path: Path) -> Iterator[bool]:
    """Waits for a lock that the system releases when its holder dies; tells whether there are such locks here."""
    file = _locked(path)
    try:
        yield file is not None
    finally:
        if file is not None:
            path.unlink(missing_ok=True)
            file.close()


def _locked(path: Path) -> IO[bytes] | None:
    if sys.platform == "win32":
        return None
    while True:
        file = path.open("ab")
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError:  # a file system without locks
            file.close()
            return None
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file
        file.close()  # its last holder has removed it meanwhile


def mapped(folder: Path, *names: str) -> tuple[NDArray[Any], ...]:
    """Maps arrays of a folder; plain, since slices of `numpy.memmap` cost several times more. OSError, ValueError."""
    try:
        return tuple(np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r")) for name in names)
    except EOFError as error:
        raise ValueError(f"a file in {folder} is empty") from error


def mapped_bytes(path: Path, size: int) -> mmap.mmap | bytes:
    """Maps a file of so many bytes, of which slices are plain `bytes`. OSError, ValueError."""
    with path.open("rb") as file:
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else file.read()  # none maps nothing
    if len(content) != size:
        raise ValueError(f"{path.name} has {len(content)} bytes instead of {size}")
    return content
