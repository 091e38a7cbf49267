"""The display on a terminal: the lines that a log would have, and below them two bars that stay."""

from __future__ import annotations

import sys
from typing import IO

from trainers.tracking.progress import PlainProgress, Progress, Record


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
