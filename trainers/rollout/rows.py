"""From a conversation to training rows, and the same rows behind another prompt.

A row holds the tokens as they were generated, and which of them are the model's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from skill_library import SkillLibrary
from skillc_gym.chat import ChatFormat, Message, assistant, system
from skillc_gym.errors import ConfigError
from trainers.base import TokenRow
from trainers.engines.types import Generation
from trainers.rollout.chat_tokens import ChatTokens, without_thoughts


def own_tokens(generation: Generation) -> list[int]:
    """1 for each token of a reply that was the model's to choose, 0 for one that its choices forced."""
    return [int(len(each) > 1) for each in generation.allowed] or [1] * len(generation.token_ids)


def choices_of(generation: Generation) -> tuple[tuple[int, ...], ...]:
    """The tokens among which each own token of a reply was drawn; none where all could be."""
    return tuple(each for each in generation.allowed if len(each) > 1)


class ConversationRows:
    """One growing row per episode; past turns are never tokenised again."""

    def __init__(self, chat: ChatTokens, opening: Sequence[Message]) -> None:
        self.chat, self.opening = chat, opening
        self._prompt = chat.prompt(opening)
        self._completion, self._mask, self._lengths = list[int](), list[int](), list[int]()
        self._logprobs, self._allowed = list[float](), list[tuple[int, ...]]()
        # What the environment has said since the last reply, and that reply.
        self._pending, self._last = list[int](), list[int]()

    def prompt(self) -> list[int]:
        """The whole conversation so far."""
        return self._prompt + self._completion + self._pending

    def reply(self, generation: Generation) -> None:
        """Appends what the environment had said, without loss, and the reply, with it."""
        seen, said, own = self._pending, generation.token_ids, own_tokens(generation)
        self._completion += [*seen, *said]
        self._mask += [0] * len(seen) + own
        self._logprobs += [0.0] * len(seen) + generation.logprobs
        self._allowed += choices_of(generation)
        self._pending, self._last = [], said
        self._lengths.append(sum(own))

    def observe(self, info: Mapping[str, Any]) -> None:
        """Holds the environment's tokens back until a reply follows, so that no row ends with them."""
        self._pending = self.chat.after_reply(info["new_messages"], self._last)

    def rows(self) -> list[TokenRow]:
        """One row, or none if the model never spoke; if it was forced each time, a row without own tokens."""
        if not self._lengths:
            return []
        lengths, shown = tuple(self._lengths), tuple(self.opening)
        allowed = tuple(self._allowed)
        return [TokenRow(self._prompt, self._completion, self._mask, self._logprobs, lengths, shown, allowed=allowed)]


class WindowRows:
    """A row per turn: each prompt is rendered afresh with the last few turns only."""

    def __init__(self, chat: ChatTokens, opening: Sequence[Message]) -> None:
        self.chat = chat
        self._rows = list[TokenRow]()
        self._show(opening)

    def prompt(self) -> list[int]:
        """The current turn's prompt."""
        return self._prompt

    def reply(self, generation: Generation) -> None:
        """Closes the turn's row."""
        ids, own, shown = generation.token_ids, own_tokens(generation), tuple(self._messages)
        allowed = choices_of(generation)
        row = TokenRow(self._prompt, ids, own, generation.logprobs, (sum(own),), shown, allowed=allowed)
        self._rows.append(row)

    def observe(self, info: Mapping[str, Any]) -> None:
        """Renders the next turn's prompt."""
        self._show(info["new_messages"])

    def rows(self) -> list[TokenRow]:
        """One row per turn, without own tokens where the reply was forced."""
        return self._rows

    def _show(self, messages: Sequence[Message]) -> None:
        self._messages, self._prompt = messages, self.chat.prompt(messages)


class RowsWithoutThoughts(WindowRows):
    """A row per turn, trained behind the very tokens it was generated from: the chat so far without its thoughts."""

    def reply(self, generation: Generation) -> None:
        """Closes the turn's row; later prompts show the reply without its thought."""
        super().reply(generation)
        said = without_thoughts(self.chat.reply_text(generation.token_ids))
        self._messages = [*self._messages, assistant(said)]

    def observe(self, info: Mapping[str, Any]) -> None:
        """Renders the next turn's prompt."""
        self._show([*self._messages, *info["new_messages"]])


RowBuilder = ConversationRows | WindowRows
"""Follows one episode, prompt by reply, and turns it into rows."""


class Prompts:
    """Renders a row's prompt again with another skill text in it; the completion stays token for token.

    Skills are looked up in ``library``, None where there are none. What a longer one pushes over ``max_length``, the
    longest row in tokens, is cut from the prompt's left.
    """

    def __init__(
        self, chat: ChatTokens, chat_format: ChatFormat, library: SkillLibrary | None, max_length: int
    ) -> None:
        self.chat, self.chat_format, self.library, self.max_length = chat, chat_format, library, max_length

    def skill_text(self, task_type: str) -> str:
        """The library's text for a task type; a ConfigError or SkillFileError if there is none."""
        if self.library is None:
            raise ConfigError("A prompt with the skill needs a skill library; pass library=NAME or a folder.")
        return self.library.for_task(task_type).text

    def with_skill_text(self, row: TokenRow, skill_text: str) -> TokenRow:
        """The row behind its prompt with this skill text, "" for none."""
        messages = row.messages[1:] if row.messages and row.messages[0]["role"] == "system" else row.messages
        messages = (*system(self.chat_format, skill_text), *messages)
        room = max(1, self.max_length - len(row.completion_ids))
        prompt = self.chat.prompt(messages)
        return replace(row, prompt_ids=prompt[-room:], messages=messages, prompt_cut=len(prompt) > room)
