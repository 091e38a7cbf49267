"""What the trainers ask of whoever answers in words instead of tokens; and a function as one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from inspect import isawaitable
from typing import Any, Protocol, runtime_checkable

from skillc_gym.chat import Message
from skillc_gym.errors import ConfigError, SkillCError


class ContextFullError(SkillCError, RuntimeError):
    """The chat does not fit into the model's context: the episode ends here."""


class TransientError(Exception):
    """A server's failure that may pass; ``wait``: seconds it asks for, ``reached``: whether it was connected."""

    def __init__(self, words: str, wait: float | None = None, *, reached: bool = True) -> None:
        super().__init__(words)
        self.wait, self.reached = wait, reached


@dataclass(frozen=True)
class TextRequest:
    """One reply to be given."""

    messages: Sequence[Message]
    """The chat so far."""
    seed: int
    """Seed of the reply's sampling, 31 bits; differs from turn to turn."""
    max_tokens: int
    """Longest reply in tokens."""
    temperature: float
    """Sampling temperature; 0 for the most probable reply."""


@dataclass(frozen=True)
class TextReply:
    """A reply and the tokens that it cost, as far as the engine counts them."""

    text: str
    prompt_tokens: int = 0
    completion_tokens: int = 0


@runtime_checkable
class TextEngine(Protocol):
    """Answers chats, many at once."""

    async def reply(self, request: TextRequest) -> TextReply:
        """Answers one chat; a ContextFullError if it is too long, a ServerError if there will be no answer at all."""

    async def aclose(self) -> None:
        """Lets go of connections; the next call of :meth:`reply` opens them again."""


class FunctionEngine:
    """Lets an asynchronous function answer with a text, or a :class:`TextReply` if tokens are to be counted.

    Examples:
        >>> async def ask(request: TextRequest) -> str:
        ...     return "<think>Anything new?</think><action>look</action>"
        >>> engine = FunctionEngine(ask)
    """

    def __init__(self, ask: Callable[[TextRequest], Awaitable[TextReply | str]]) -> None:
        self._ask = ask

    async def reply(self, request: TextRequest) -> TextReply:
        """Calls the function; a ConfigError if it is not asynchronous."""
        asked: Any = self._ask(request)
        if not isawaitable(asked):
            raise ConfigError(
                f"FunctionEngine takes an asynchronous function, and {self._ask!r} gave {type(asked).__name__} at "
                "once; write it as `async def`."
            )
        answer = await asked
        if isinstance(answer, TextReply):
            return answer
        if not isinstance(answer, str | None):
            raise ConfigError(f"FunctionEngine's function gives a text or a TextReply, not {type(answer).__name__}.")
        return TextReply(answer or "")  # clients give None for a reply without content

    async def aclose(self) -> None:
        """Nothing is kept."""
