"""Files that are whole or not there: written next to their place, synced to the disk, then renamed."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from skillc_gym.errors import ConfigError, SkillCError, StorageError

__all__ = ["cache_folder", "open_new", "replace_file", "require_own", "storing", "sync_folder"]

_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_NO_WAITING = getattr(os, "O_NONBLOCK", 0)
"""Opening a pipe waits for a reader otherwise."""
_REASONS = {
    errno.ENOSPC: "there is no space left on the disk; free some and go on",
    errno.EDQUOT: "the disk quota is used up; free some space and go on",
    errno.EFBIG: "the file would be larger than the system allows; raise the limit (ulimit -f)",
    errno.EROFS: "the disk is read-only; choose another folder",
    errno.EACCES: "permission is denied; choose another folder or change its owner",
    errno.EPERM: "permission is denied; choose another folder or change its owner",
    errno.ELOOP: "there is a link in its place, which is not followed; remove it",
    errno.ENXIO: "there is a pipe in its place; remove it",
}


def cache_folder(name: str) -> Path:
    """Where things of a kind lie that can be made again: a folder in ``$SKILLC_CACHE``, else in the user's cache."""
    base = os.environ.get("SKILLC_CACHE") or f"{os.environ.get('XDG_CACHE_HOME') or '~/.cache'}/skillc-gym"
    return (Path(base).expanduser() / name).absolute()  # what lies there is read after a change of folder, too


@contextmanager
def storing(path: Path) -> Iterator[None]:
    """Turns the system's reason why a file could not be written into a sentence: StorageError for its ``OSError``."""
    try:
        yield
    except OSError as error:
        if isinstance(error, SkillCError):
            raise
        reason = _REASONS.get(error.errno or 0, error.strerror or str(error))
        raise StorageError(f"{path} cannot be written: {reason}.") from error


def open_new(path: Path, *, append: bool = False) -> int:
    """Opens a regular file that must not exist, or one to append to, and follows no link; returns its descriptor."""
    how = os.O_APPEND | _NO_WAITING if append else os.O_EXCL
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | how | _NO_LINK | getattr(os, "O_BINARY", 0), 0o666)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "there is no regular file in its place")
    return descriptor


def replace_file(path: Path, parts: Iterable[bytes]) -> None:
    """Writes a file: a reader, or a run after a loss of power, finds the old content or the new one.

    Args:
        path: The file; its folder is made.
        parts: Its content, written piece by piece. If this raises, the old file stays.

    Raises:
        StorageError: It cannot be written.
    """
    # Nobody else's: threads, or processes of several machines that share the folder, may write the same file.
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    with storing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = open_new(draft)
    try:
        with storing(path), os.fdopen(descriptor, "wb") as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        with storing(path):
            draft.replace(path)
            sync_folder(path.parent)
    finally:
        draft.unlink(missing_ok=True)


def require_own(path: Path, begins: bytes, holds: bytes = b"") -> None:
    """Refuses a place with a file that is not ours: that begins otherwise, or does not hold this (ConfigError)."""
    if path.is_dir():
        raise ConfigError(f"{path} is a folder; name a file.")
    if os.path.lexists(path) and not path.is_file():
        raise ConfigError(f"{path} is no regular file; name another one.")
    if path.is_file():
        with storing(path), path.open("rb") as file:
            if file.read(len(begins)).lower() != begins.lower() or (holds and holds not in file.read()):
                raise ConfigError(f"{path} holds something else, which would be lost; name another file.")


def sync_folder(folder: Path) -> None:
    """Makes the names in a folder last: a rename is lost with the power otherwise."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:  # not on Windows
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some file systems have no such thing.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):
            raise
    finally:
        os.close(descriptor)
