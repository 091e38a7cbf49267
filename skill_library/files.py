"""Reading files that somebody else made: regular ones only, of bounded size, from within their folder."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

from skill_library.errors import SkillCError


class UnreadableFileError(SkillCError, OSError):
    """A file that is not a regular file, is too large, or may not be read."""


def read_bounded(file: Path, max_bytes: int) -> bytes:
    """Reads a whole file of a bounded length, links followed, without waiting for a pipe.

    Raises:
        FileNotFoundError: There is no such file.
        UnreadableFileError: It is a folder, a pipe or a device, is longer, or may not be read.
    """
    try:
        with _opened(file) as stream:
            content = stream.read(max_bytes + 1)
    except (FileNotFoundError, UnreadableFileError):
        raise
    except (OSError, ValueError) as error:  # a name with a zero byte is a ValueError
        raise UnreadableFileError(f"{file} cannot be read ({getattr(error, 'strerror', None) or error})") from error
    if len(content) > max_bytes:
        raise UnreadableFileError(f"{file} is longer than the {max_bytes:,} bytes allowed")
    return content


def _opened(file: Path) -> BinaryIO:
    # Opening a pipe would wait for a writer.
    descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UnreadableFileError(f"{file} is not a regular file but a folder, a pipe or a device")
    return os.fdopen(descriptor, "rb")


def stays_inside(file: Path, folder: Path) -> bool:
    """Whether a file lies in a folder once links are followed."""
    return file.resolve().is_relative_to(folder.resolve())
