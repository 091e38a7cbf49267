"""What writers that ask a language model have in common: replies are read strictly, and a bad one is only counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from skill_library.errors import brief
from trainers.memory.replies import BadReplyError

__all__ = ["AskingWriter", "Message", "Speak"]

T = TypeVar("T")
Message = dict[str, str]
Speak = Callable[[Sequence[Sequence[Message]]], Sequence[str]]
"""Gives one reply to each of several chats."""


class AskingWriter:
    """Base of these writers.

    Args:
        speak: The language model.
        role: Who it is to be, the system message of every question.

    Attributes:
        bad_replies: Replies so far that could not be read.
        last_fault: What was wrong with the last of them, and how it begins.
    """

    def __init__(self, speak: Speak, role: str) -> None:
        self.bad_replies = 0
        self.last_fault = ""
        self._speak, self._role = speak, role

    def _ask(self, questions: Sequence[str], read: Callable[[str], T]) -> list[T | None]:
        """Asks all questions in one batch; None for each reply that ``read`` refuses."""
        chats = [[{"role": "system", "content": self._role}, {"role": "user", "content": text}] for text in questions]
        return [self._read(reply, read) for reply in self._speak(chats)] if chats else []

    def _read(self, reply: str, read: Callable[[str], T]) -> T | None:
        try:
            return read(reply)
        except BadReplyError as error:
            self.bad_replies += 1
            self.last_fault = f"{error}; it begins {brief(reply)}"
            return None
