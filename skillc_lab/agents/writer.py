"""What agents ask of whoever writes for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from skillc_gym.episodes import Episode
from trainers.memory.replies import Decision, Edit

__all__ = ["AgentWriter"]


class AgentWriter(Protocol):
    """Writes plans, edits of rules, and facts."""

    name: str
    """Recorded with the agent."""
    bad_replies: int
    """Replies so far that could not be read; each costs nothing but the text it would have been."""

    def reflect(self, failed: Sequence[Episode], earlier: Sequence[Sequence[str]]) -> list[str | None]:
        """Writes a plan for the next try of each failed task.

        Args:
            failed: The failed episodes.
            earlier: The plans that each of them has had so far.

        Returns:
            One plan per episode; None where there is none.
        """
        ...

    def edit(self, rules: Sequence[str], episodes: Sequence[Episode]) -> list[Edit]:
        """Edits a list of rules in the light of episodes: a failed one and a won one of a task, or won ones alone."""
        ...

    def facts(self, episode: Episode) -> list[str]:
        """Extracts what is worth remembering of an episode; perhaps nothing."""
        ...

    def decide(self, fact: str, similar: Sequence[str]) -> Decision:
        """Says what a fact means for a memory that holds similar ones, the most similar first."""
        ...
