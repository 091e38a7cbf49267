"""A writer that writes nothing: the bank stays what it was, and only its use and its credit change."""

from __future__ import annotations

from collections.abc import Sequence

from skillc_gym.episodes import Episode
from trainers.memory.entries import Draft

__all__ = ["SilentWriter"]


class SilentWriter:
    """Learns no text from any episode."""

    def __init__(self) -> None:
        self.name = "none"
        self.bad_replies = 0

    def write(self, episodes: Sequence[Episode]) -> list[Draft]:
        """No texts."""
        return []

    def write_lesson(self, episode: Episode) -> Draft | None:
        """No lesson."""
        return None
