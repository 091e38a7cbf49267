"""Time for people: how long the rest takes, durations in words, tokens per second."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

__all__ = ["Clock", "duration", "tokens_per_second"]


class Clock:
    """Estimates how long the rest takes, from the steps since it was started."""

    def __init__(self) -> None:
        self._from = 0
        self._began = time.monotonic()

    def start(self, step: int) -> None:
        """Starts counting after so many steps."""
        self._from, self._began = step, time.monotonic()

    def left(self, step: int, steps: int) -> str:
        """The time left, in words."""
        done = step - self._from
        if done <= 0:
            return "?"
        return duration((time.monotonic() - self._began) / done * (steps - step))


def duration(seconds: float) -> str:
    """12 s, 3 min 20 s, 2 h 05 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def tokens_per_second(record: Mapping[str, Any]) -> float:
    """Speed of generation in one step, environments included."""
    return float(record["tokens_generated"]) / max(float(record.get("seconds_generate", 0.0)), 1e-9)
