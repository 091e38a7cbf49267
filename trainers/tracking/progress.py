"""What a person sees while a run trains."""

from __future__ import annotations

import sys
from typing import IO

from skillc_gym.envs.registry import short_type
from trainers.tracking.listeners import PlainProgress, Progress, SilentProgress

__all__ = ["PlainProgress", "Progress", "SilentProgress", "make_progress", "short_type"]


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
