"""Who is told what happens while a run trains: the protocol, and one who shows nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

__all__ = ["Progress", "Record", "SilentProgress"]

Record = Mapping[str, Any]


class Progress(Protocol):
    """Receives what happens, in the order it happens."""

    def start(self, title: str, step: int, steps: int) -> None:
        """A run begins (or goes on) after so many of so many steps."""
        ...

    def phase(self, name: str, done: int, total: int) -> None:
        """Within a step: how far generation, update or validation has come."""
        ...

    def record(self, record: Record) -> None:
        """A line of the metrics was written."""
        ...

    def note(self, text: str) -> None:
        """Something worth a sentence: a checkpoint, a retirement, an interruption."""
        ...

    def close(self) -> None:
        """The run is over, for whatever reason."""
        ...


class SilentProgress:
    """Shows nothing."""

    def start(self, title: str, step: int, steps: int) -> None:
        """Shows nothing."""

    def phase(self, name: str, done: int, total: int) -> None:
        """Shows nothing."""

    def record(self, record: Record) -> None:
        """Shows nothing."""

    def note(self, text: str) -> None:
        """Shows nothing."""

    def close(self) -> None:
        """Shows nothing."""
