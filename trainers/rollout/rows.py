"""From a conversation to training rows: the tokens as they were generated, and which of them are the model's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from skillc_gym.chat import Message
from trainers.base import TokenRow
from trainers.engines.types import Generation
from trainers.rollout.chat_tokens import ChatTokens

__all__ = ["ConversationRows", "RowBuilder", "WindowRows"]


class RowBuilder(Protocol):
    """Follows one episode and turns it into rows."""

    def prompt(self) -> list[int]:
        """The tokens that the next reply continues."""
        ...

    def reply(self, generation: Generation) -> None:
        """Takes in the model's reply to that prompt."""
        ...

    def observe(self, info: Mapping[str, Any]) -> None:
        """Takes in what the environment answered: ``info["new_messages"]`` of the prompt wrapper."""
        ...

    def rows(self) -> list[TokenRow]:
        """The finished rows."""
        ...


@dataclass
class ConversationRows:
    """One growing row per episode; past turns are never tokenised again."""

    chat: ChatTokens
    opening: Sequence[Message]
    _prompt: list[int] = field(init=False)
    _completion: list[int] = field(default_factory=list)
    _mask: list[int] = field(default_factory=list)
    _logprobs: list[float] = field(default_factory=list)
    _pending: list[int] = field(default_factory=list)
    _last: list[int] = field(default_factory=list)
    _lengths: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._prompt = self.chat.prompt(self.opening)

    def prompt(self) -> list[int]:
        """The whole conversation so far."""
        return self._prompt + self._completion + self._pending

    def reply(self, generation: Generation) -> None:
        """Appends what the environment had said, without loss, and the reply, with it."""
        for ids, mask, logprobs in (
            (self._pending, 0, [0.0] * len(self._pending)),
            (generation.token_ids, 1, generation.logprobs),
        ):
            self._completion += ids
            self._mask += [mask] * len(ids)
            self._logprobs += logprobs
        self._pending, self._last = [], generation.token_ids
        self._lengths.append(len(generation.token_ids))

    def observe(self, info: Mapping[str, Any]) -> None:
        """Holds the environment's tokens back until a reply follows, so that no row ends with them."""
        self._pending = self.chat.after_reply(info["new_messages"], self._last)

    def rows(self) -> list[TokenRow]:
        """One row, or none if the model never spoke."""
        if not any(self._mask):
            return []
        return [
            TokenRow(
                self._prompt,
                self._completion,
                self._mask,
                self._logprobs,
                reply_lengths=tuple(self._lengths),
                messages=tuple(self.opening),
            )
        ]


@dataclass
class WindowRows:
    """A row per turn: each prompt is rendered afresh with the last few turns only."""

    chat: ChatTokens
    opening: Sequence[Message]
    _prompt: list[int] = field(init=False)
    _messages: Sequence[Message] = field(init=False)
    _rows: list[TokenRow] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._show(self.opening)

    def prompt(self) -> list[int]:
        """The current turn's prompt."""
        return self._prompt

    def reply(self, generation: Generation) -> None:
        """Closes the turn's row."""
        ids = generation.token_ids
        row = TokenRow(
            self._prompt,
            ids,
            [1] * len(ids),
            generation.logprobs,
            reply_lengths=(len(ids),),
            messages=tuple(self._messages),
        )
        self._rows.append(row)

    def observe(self, info: Mapping[str, Any]) -> None:
        """Renders the next turn's prompt."""
        self._show(info["new_messages"])

    def rows(self) -> list[TokenRow]:
        """One row per turn."""
        return self._rows

    def _show(self, messages: Sequence[Message]) -> None:
        self._messages, self._prompt = messages, self.chat.prompt(messages)
