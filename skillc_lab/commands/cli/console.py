"""What commands say: results on standard output, everything else on standard error."""

from __future__ import annotations

import sys

__all__ = ["complain", "count_line", "say"]


def say(text: str) -> None:
    """Writes a result."""
    sys.stdout.write(text + "\n")


def complain(text: str) -> None:
    """Writes what a person should know but no program should read."""
    sys.stderr.write(text + "\n")


def count_line(name: str, done: int, total: int, tail: str = "") -> None:
    """Rewrites one line of progress; into a file, only the last one is written."""
    end = "\n" if done == total else "\r" if sys.stderr.isatty() else ""
    if end:
        sys.stderr.write(f"{name:>14} {done:5d}/{total}{tail}{end}")
        sys.stderr.flush()
