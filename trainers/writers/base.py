"""What writers write, and what is asked of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, get_args

from skillc_gym.episodes import Episode
from skillc_gym.errors import ConfigError, unknown_name
from trainers.writers.replies import Decision, Edit

__all__ = ["AgentWriter", "AnswerChats", "Draft", "Kind", "Message", "SilentWriter", "Writer"]

Kind = Literal["general", "task", "principle"]
Message = dict[str, str]
AnswerChats = Callable[[Sequence[Sequence[Message]]], Sequence[str]]
"""Gives one reply to each of several chats."""


@dataclass(frozen=True)
class Draft:
    """A text that somebody proposes for a bank of skills.

    Attributes:
        text: What an agent will read.
        key: What it is retrieved by: a goal.
        task_type: The type it was written for; "" for all types.
        kind: What sort of lesson it is.
        writer: Who wrote it.
        sources: Tasks of the episodes that it was written from; training tasks only.
    """

    text: str
    key: str = ""
    task_type: str = ""
    kind: Kind = "task"
    writer: str = ""
    sources: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise ConfigError("An entry needs a text that an agent can read, got an empty one")
        if self.kind not in get_args(Kind):
            raise unknown_name("kind of entry", self.kind, get_args(Kind))
        object.__setattr__(self, "sources", tuple(self.sources))


class Writer(Protocol):
    """Turns episodes of training tasks into texts."""

    name: str
    """Recorded with every text it writes."""
    bad_replies: int
    """Replies so far that could not be read; each costs nothing but the text it would have been."""

    def write(self, episodes: Sequence[Episode]) -> list[Draft]:
        """Writes skills from won and lost episodes of any types; perhaps none."""

    def write_lesson(self, episode: Episode) -> Draft | None:
        """Writes what one episode taught, or nothing."""


class AgentWriter(Protocol):
    """Writes plans, edits of rules, and facts; name and bad replies as of :class:`Writer`."""

    name: str
    bad_replies: int

    def reflect(self, failed: Sequence[Episode], earlier: Sequence[Sequence[str]]) -> list[str | None]:
        """Writes a plan for the next try of each failed task; None where there is none.

        Args:
            failed: The failed episodes.
            earlier: The plans that each of them has had so far.
        """

    def edit(self, rules: Sequence[str], episodes: Sequence[Episode]) -> list[Edit]:
        """Edits a list of rules in the light of episodes: a failed one and a won one of a task, or won ones alone."""

    def facts(self, episode: Episode) -> list[str]:
        """Extracts what is worth remembering of an episode; perhaps nothing."""

    def decide(self, fact: str, similar: Sequence[str]) -> Decision:
        """Says what a fact means for a memory that holds similar ones, the most similar first."""


class SilentWriter:
    """Learns no text from any episode: the bank stays what it was, and only its use and its credit change."""

    def __init__(self) -> None:
        self.name, self.bad_replies = "none", 0

    def write(self, episodes: Sequence[Episode]) -> list[Draft]:
        """No texts."""
        return []

    def write_lesson(self, episode: Episode) -> None:
        """No lesson."""
