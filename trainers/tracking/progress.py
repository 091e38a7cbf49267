"""What a person sees while a run trains: plain lines, on a terminal with bars below them, or nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import IO, Any

from skillc_gym.envs.registry import short_type

Record = Mapping[str, Any]


class Progress:
    """Receives what happens, in the order it happens; this one shows nothing."""

    def start(self, title: str, step: int, steps: int) -> None:
        """A run begins (or goes on) after so many of so many steps."""

    def phase(self, name: str, done: int, total: int) -> None:
        """Within a step: how far generation, update or validation has come."""

    def record(self, record: Record) -> None:
        """A line of the metrics was written."""

    def note(self, text: str) -> None:
        """Something worth a sentence: a checkpoint, a retirement, an interruption."""

    def close(self) -> None:
        """The run is over, for whatever reason."""


SilentProgress = Progress


class PlainProgress(Progress):
    """One line per event, for logs and pipes."""

    def __init__(self, stream: IO[str]) -> None:
        self.stream = stream
        self._began, self._from, self._steps = time.monotonic(), 0, 0

    def start(self, title: str, step: int, steps: int) -> None:
        """Writes the title."""
        self._began, self._from, self._steps = time.monotonic(), step, steps
        self._line(title)

    def record(self, record: Record) -> None:
        """Writes one line."""
        if record["event"] == "validation":
            self._line(
                f"validation at {record['step']:>4}   with {_percent(record['overall_with'])}  without "
                f"{_percent(record['overall_without'])}{_curriculum(record)}{_cuts(record)}"
            )
            return
        done = record["step"] - self._from
        rest = (time.monotonic() - self._began) / done * (self._steps - record["step"]) if done > 0 else None
        left = "?" if rest is None else _duration(rest)
        speed = record["tokens_generated"] / max(record.get("seconds_generate", 0.0), 1e-9)  # environments included
        self._line(
            f"step {record['step']:>4}/{self._steps}   success {_percent(record['success'])} "
            f"(with {_percent(record['success_with'])}, without {_percent(record['success_without'])})   "
            f"loss {record['loss']:+.3f}   {speed:,.0f} tokens/s   {left} left"
            f"{_cuts(record)}"
        )

    def note(self, text: str) -> None:
        """Writes the sentence."""
        self._line(text)

    def _line(self, text: str) -> None:
        self.stream.write(text + "\n")
        self.stream.flush()


def _curriculum(record: Record) -> str:
    if not record.get("gated", True):
        return ""
    gaps = "  ".join(f"{short_type(kind)} {gap:+.2f}" for kind, gap in record["gap_smoothed"].items())
    return f"   smoothed gaps: {gaps}   active: {' '.join(map(short_type, record['active'])) or 'none'}"


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


def _duration(seconds: float) -> str:
    """12 s, 3 min 20 s, 2 h 05 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


# On a terminal -------------------------------------------------------------------------------------------------------


class LiveProgress(PlainProgress):
    """One bar says how far the run is, the other how far its step: generation, update or validation. Needs rich."""

    def __init__(self, stream: IO[str]) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as Bars

        super().__init__(stream)
        self.bars = Bars(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), console=Console(file=stream)
        )
        self._run, self._within = self.bars.add_task("step"), self.bars.add_task("starting")

    def start(self, title: str, step: int, steps: int) -> None:
        """Writes the title, and shows the bars."""
        super().start(title, step, steps)
        self.bars.update(self._run, completed=step, total=steps)
        self.bars.start()

    def phase(self, name: str, done: int, total: int) -> None:
        """Moves the second bar."""
        self.bars.update(self._within, description=name, completed=done, total=total)

    def record(self, record: Record) -> None:
        """Writes the line, and moves the first bar."""
        super().record(record)
        self.bars.update(self._run, completed=record["step"])

    def close(self) -> None:
        """Leaves the bars as they are."""
        self.bars.stop()

    def _line(self, text: str) -> None:
        self.bars.console.print(text, markup=False, highlight=False, soft_wrap=True)


def make_progress(stream: IO[str] | None = None) -> Progress:
    """Lines with bars below them on a terminal (with rich installed), lines alone elsewhere."""
    stream = stream or sys.stderr
    try:
        return LiveProgress(stream) if stream.isatty() else PlainProgress(stream)
    except ImportError:
        return PlainProgress(stream)
