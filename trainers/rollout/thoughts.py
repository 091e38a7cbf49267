"""Conversations that do not show earlier thoughts: a row per turn, each prompt rendered afresh."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from skillc_gym.chat import Message, assistant
from trainers.base import TokenRow
from trainers.engines.types import Generation
from trainers.rollout.chat_tokens import ChatTokens, without_thoughts

__all__ = ["RowsWithoutThoughts"]


@dataclass
class RowsWithoutThoughts:
    """A row per turn: the whole conversation so far without its thoughts, then the reply with its own.

    A reply is trained on behind the very tokens that it was generated from; only its copy in later prompts is shorter.
    """

    chat: ChatTokens
    opening: Sequence[Message]
    _messages: list[Message] = field(init=False)
    _prompt: list[int] = field(init=False)
    _rows: list[TokenRow] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._messages = list(self.opening)
        self._prompt = self.chat.prompt(self._messages)

    def prompt(self) -> list[int]:
        """The current turn's prompt."""
        return self._prompt

    def reply(self, generation: Generation) -> None:
        """Closes the turn's row."""
        ids = generation.token_ids
        own, shown = [1] * len(ids), tuple(self._messages)
        self._rows.append(TokenRow(self._prompt, ids, own, generation.logprobs, (len(ids),), shown))
        self._messages.append(assistant(without_thoughts(self.chat.reply_text(ids))))

    def observe(self, info: Mapping[str, Any]) -> None:
        """Renders the next turn's prompt."""
        self._messages += info["new_messages"]
        self._prompt = self.chat.prompt(self._messages)

    def rows(self) -> list[TokenRow]:
        """One row per turn."""
        return self._rows
