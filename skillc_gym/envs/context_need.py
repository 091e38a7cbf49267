"""How long an environment's episodes get."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ContextNeed"]


@dataclass(frozen=True)
class ContextNeed:
    """Characters that an environment's longest episodes take in the default wording, measured on its real tasks.

    Attributes:
        first: The first prompt, with the skill.
        turn: What each later turn adds (observation and possible commands, the agent's reply apart), averaged over the
            longest episode.
        window: The longest prompt of the form ``window:5``, with the skill.
    """

    first: int
    turn: int
    window: int
