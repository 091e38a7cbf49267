"""What a person sees while a run trains."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import IO

from skillc_gym.envs.registry import short_type
from trainers.tracking.clock import Clock, tokens_per_second
from trainers.tracking.listeners import Progress, Record, SilentProgress

__all__ = ["PlainProgress", "Progress", "SilentProgress", "make_progress", "short_type"]


class PlainProgress(SilentProgress):
    """One line per event, for logs and pipes."""

    def __init__(self, stream: IO[str]) -> None:
        self.stream = stream
        self._steps = 0
        self._clock = Clock()

    def start(self, title: str, step: int, steps: int) -> None:
        """Writes the title."""
        self._steps = steps
        self._clock.start(step)
        self._line(title)

    def record(self, record: Record) -> None:
        """Writes one line."""
        if record["event"] == "validation":
            gaps = "  ".join(f"{short_type(k)} {v:+.2f}" for k, v in record["gap_smoothed"].items())
            self._line(
                f"validation at {record['step']:>4}   with {_percent(record['overall_with'])}  without "
                f"{_percent(record['overall_without'])}   smoothed gaps: {gaps}   active: {_active(record)}"
                f"{_cuts(record)}"
            )
            return
        left = self._clock.left(record["step"], self._steps)
        self._line(
            f"step {record['step']:>4}/{self._steps}   success {_percent(record['success'])} "
            f"(with {_percent(record['success_with'])}, without {_percent(record['success_without'])})   "
            f"loss {record['loss']:+.3f}   {tokens_per_second(record):,.0f} tokens/s   {left} left"
            f"{_cuts(record)}"
        )

    def note(self, text: str) -> None:
        """Writes the sentence."""
        self._line(text)

    def _line(self, text: str) -> None:
        self.stream.write(text + "\n")
        self.stream.flush()


def _percent(rate: float | None) -> str:
    return "  --" if rate is None else f"{100 * rate:3.0f}%"


def _cuts(record: Record) -> str:
    """Shares of the episodes that the context cut, where it cut any."""
    shares = record.get("cut_by_context")
    if not isinstance(shares, Mapping):
        shares = {arm: record.get(f"cut_by_context_{arm}") for arm in ("with", "without")}
    if not any(shares.values()):
        return ""
    return f"   cut by the context: with {_percent(shares['with'])}, without {_percent(shares['without'])}"


def _active(record: Record) -> str:
    return " ".join(short_type(kind) for kind in record["active"]) or "none"


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
