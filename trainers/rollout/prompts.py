"""The same tokens behind another prompt: with the skill, without it, or with any text."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from skillc_gym.chat import system
from skillc_gym.errors import ConfigError
from trainers.base import TokenRow
from trainers.rollout.chat_tokens import ChatTokens

if TYPE_CHECKING:
    from skill_library import SkillLibrary
    from skillc_gym.chat import ChatFormat

__all__ = ["Prompts"]


class Prompts:
    """Renders a row's prompt again with another skill text in it; the completion stays token for token.

    Args:
        chat: Turns messages into tokens.
        chat_format: The wording of the prompts.
        library: Where the skill of a task type is looked up; None where there are no skills.
        max_length: Longest row in tokens; what a longer skill pushes over it is cut from the prompt's left.
    """

    def __init__(
        self, chat: ChatTokens, chat_format: ChatFormat, library: SkillLibrary | None, max_length: int
    ) -> None:
        self.chat = chat
        self.chat_format = chat_format
        self.library = library
        self.max_length = max_length

    def skill_text(self, task_type: str) -> str:
        """The library's text for a task type.

        Raises:
            ConfigError: There is no library.
            SkillFileError: It has no skill for the type.
        """
        if self.library is None:
            raise ConfigError("A prompt with the skill needs a skill library; pass library=NAME or a folder.")
        return self.library.for_task(task_type).text

    def with_skill_text(self, row: TokenRow, skill_text: str) -> TokenRow:
        """The row behind its prompt with this skill text, "" for none."""
        messages = row.messages[1:] if row.messages and row.messages[0]["role"] == "system" else row.messages
        messages = (*system(self.chat_format, skill_text), *messages)
        room = max(1, self.max_length - len(row.completion_ids))
        return replace(row, prompt_ids=self.chat.prompt(messages)[-room:], messages=messages)
