"""What a memory asks of whoever writes its texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from skillc_gym.episodes import Episode
from trainers.memory.entries import Draft

__all__ = ["Writer"]


class Writer(Protocol):
    """Turns episodes of training tasks into texts."""

    name: str
    """Recorded with every text it writes."""
    bad_replies: int
    """Replies so far that could not be read; each costs nothing but the text it would have been."""

    def write(self, episodes: Sequence[Episode]) -> list[Draft]:
        """Writes skills from won and lost episodes of any types; perhaps none."""
        ...

    def write_lesson(self, episode: Episode) -> Draft | None:
        """Writes what one episode taught, or nothing."""
        ...
