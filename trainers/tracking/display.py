"""What a command shows: a live display on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from typing import IO

from trainers.tracking.progress import PlainProgress, Progress


def make_progress(stream: IO[str] | None = None) -> Progress:
    """A live display on a terminal (with rich installed), plain lines elsewhere."""
    stream = stream or sys.stderr
    if not stream.isatty():
        return PlainProgress(stream)
    try:
        from trainers.tracking.live import LiveProgress
    except ImportError:
        return PlainProgress(stream)
    return LiveProgress(stream)
