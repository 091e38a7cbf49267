"""The engine ``openai``: any server with OpenAI's chat completions (vLLM, llama.cpp, Ollama, hosted ones)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import urlsplit

import numpy as np

from skillc_gym.errors import ConfigError, ServerError, missing_extra, unknown_name
from trainers.base import Count, Natural, NotNegative, Positive, check_values
from trainers.engines.registry import EngineSpec
from trainers.engines.text import TextReply, TextRequest

if TYPE_CHECKING:
    from trainers.config import TrainConfig

__all__ = ["ENGINE", "OpenAIEngine", "RateLimiter", "ServerOptions", "TransientError"]

_KEY_VARIABLE = "OPENAI_API_KEY"


@dataclass(frozen=True)
class ServerOptions:
    """Where the server is, how patient to be with it, and what it may cost; its key is no option.

    Raises:
        ConfigError: A value lies outside its range, or an address or an option carries a secret.
    """

    base_url: str = "http://127.0.0.1:8000/v1"
    """Address up to ``/v1``."""
    key_variable: str | None = None
    """Environment variable that holds the key; OPENAI_API_KEY if it is set, else no key."""
    timeout: Positive = 120.0
    """Seconds without a byte from the server after which a request is given up and tried again."""
    deadline: Positive = 1800.0
    """Seconds after which a reply is given up however it trickles."""
    retries: Natural = 8
    """How often a request is tried again after 408, 409, 425, 429, 5xx, a broken connection or a timeout."""
    first_wait: NotNegative = 1.0
    """Seconds before the first repetition, doubled with each further one; a server's Retry-After goes before."""
    longest_wait: Positive = 120.0
    """Longest wait in seconds, a server's own wish included."""
    requests_per_minute: Positive | None = None
    """Most requests per minute; no limit if None."""
    token_budget: Count | None = None
    """Tokens, read and written, after which the evaluation stops; what was played is kept. No limit if None."""
    stream: bool = False
    """Ask for replies in pieces, so that ``timeout`` counts from piece to piece."""
    max_tokens_field: str = "max_tokens"
    """What the server calls the longest reply; ``max_completion_tokens`` with some."""
    input_price: NotNegative | None = None
    """Price of a million tokens read, in any currency, for the cost in the report."""
    output_price: NotNegative | None = None
    """Price of a million tokens written."""
    body: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of every request."""

    def __post_init__(self) -> None:
        check_values(self, prefix="engine.")
        address = urlsplit(self.base_url)
        if address.scheme not in ("http", "https") or not address.hostname:
            raise ConfigError(f"engine.base_url must be like http://host:port/v1, got {self.base_url!r}")
        if address.username or address.password or address.query:
            raise ConfigError("engine.base_url must not carry a user name, a password or a query: it is recorded")

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> ServerOptions:
        """Reads the options of a run.

        Raises:
            UnknownNameError: There is no option of that name.
            ConfigError: A key is given as an option: options are recorded.
        """
        known = [spec.name for spec in fields(cls)]
        for name in options:
            if name in ("api_key", "key"):
                raise ConfigError(
                    f"engine.{name} would be recorded with the run; put the key into {_KEY_VARIABLE}, or name another "
                    "environment variable with engine.key_variable"
                )
            if name not in known:
                raise unknown_name("option of the engine openai", name, known)
        return cls(**options)

    def key(self) -> str | None:
        """The key from the environment, without white space around it; None for a server that wants none.

        Raises:
            ConfigError: The variable that was named is not set, or holds what no header can carry.
        """
        variable = self.key_variable or _KEY_VARIABLE
        found = os.environ.get(variable, "").strip()
        if self.key_variable and not found:
            raise ConfigError(f"engine.key_variable names {variable}, which is not set in the environment")
        if not (found.isascii() and found.isprintable()):
            # Said without the key: whatever is wrong with it, it may still be one.
            raise ConfigError(f"The key in {variable} holds characters other than printable ASCII; set it again")
        return found or None

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float | None:
        """What so many tokens cost; None without prices."""
        if self.input_price is None or self.output_price is None:
            return None
        return (prompt_tokens * self.input_price + completion_tokens * self.output_price) / 1e6


class TransientError(Exception):
    """A failure of a server that may pass.

    Attributes:
        wait: Seconds that the server asks to wait; None if it does not say.
    """

    def __init__(self, words: str, wait: float | None = None) -> None:
        super().__init__(words)
        self.wait = wait


class RateLimiter:
    """Spaces requests evenly, and holds all of them back when the server asks for it.

    Args:
        per_minute: Most requests per minute; None for no limit.
    """

    def __init__(self, per_minute: float | None) -> None:
        self._interval = 60.0 / per_minute if per_minute else 0.0
        self._next = 0.0

    async def wait(self) -> None:
        """Returns when the next request may be sent."""
        now = asyncio.get_running_loop().time()
        due = max(now, self._next)
        self._next = due + self._interval
        await asyncio.sleep(due - now)

    def hold(self, seconds: float) -> None:
        """Sends nothing for some seconds."""
        self._next = max(self._next, asyncio.get_running_loop().time() + seconds)

    def reset(self) -> None:
        """Forgets: another event loop has another clock."""
        self._next = 0.0


class OpenAIEngine:
    """Answers by asking a server, again where that may help.

    Tried again: statuses 408, 409, 425, 429 and 5xx, broken connections, timeouts, answers that cannot be read or end
    in the middle. Not tried again: any other refusal, and a quota that is used up. The key is read from the environment
    when the engine is made, is sent, and is told nowhere else.

    The package openai sends and reads. Its own repetitions are turned off: they know neither a limit of requests per
    minute nor answers that end in the middle, and their waits cannot be set.

    Args:
        model: What the server calls the model.
        options: Where and how to ask.

    Raises:
        MissingExtraError: The package openai is not installed.
        ConfigError: The key's environment variable is named and not set, or is no key.
    """

    def __init__(self, model: str, options: ServerOptions | None = None) -> None:
        try:
            from trainers.engines.openai_client import ServerClient
        except ImportError as error:
            raise missing_extra("openai", "openai") from error
        self.model, self.options = model, options or ServerOptions()
        self.spent_tokens = 0
        """Tokens read and written so far."""
        self.repeated = 0
        """Requests that had to be tried again."""
        self._client = ServerClient(model, self.options, self.options.key())
        self._limiter = RateLimiter(self.options.requests_per_minute)
        self._jitter = np.random.default_rng(0)

    async def reply(self, request: TextRequest) -> TextReply:
        """Asks until there is an answer.

        Raises:
            ContextFullError: The server says that the chat is too long.
            ServerError: The server refuses, stays broken, or the budget is spent; the message says what to do.
        """
        for attempt in range(self.options.retries + 1):
            self._check_budget()
            await self._limiter.wait()
            try:
                reply = await self._client.ask(request)
            except TransientError as error:
                if attempt == self.options.retries:
                    raise self._gave_up(error) from error
                self.repeated += 1
                await self._back_off(attempt, error)
            else:
                self._count(reply)
                return reply
        raise AssertionError("the last attempt returns or raises")

    async def aclose(self) -> None:
        """Closes the connections."""
        self._limiter.reset()
        await self._client.aclose()

    async def _back_off(self, attempt: int, error: TransientError) -> None:
        wait = self.options.first_wait * 2**attempt * (0.5 + 0.5 * float(self._jitter.random()))
        if error.wait is not None:
            wait = error.wait
            self._limiter.hold(min(wait, self.options.longest_wait))
        await asyncio.sleep(min(wait, self.options.longest_wait))

    def _count(self, reply: TextReply) -> None:
        used = reply.prompt_tokens + reply.completion_tokens
        if self.options.token_budget is not None and not used:
            raise ServerError(f"{self.options.base_url} counts no tokens, so engine.token_budget cannot be kept")
        self.spent_tokens += used

    def _check_budget(self) -> None:
        budget = self.options.token_budget
        if budget is not None and self.spent_tokens >= budget:
            raise ServerError(
                f"The budget of {budget:,} tokens is spent ({self.spent_tokens:,}). What was played is kept: raise "
                "engine.token_budget and run the same command again"
            )

    def _gave_up(self, error: TransientError) -> ServerError:
        return ServerError(
            f"{self.options.base_url} gave no answer in {self.options.retries + 1} tries; the last one: {error}. "
            "Is the server up, and is engine.base_url its address? What was played is kept: run the same command again"
        )


def _plays_only(_: Any) -> NoReturn:
    raise ConfigError("engine=openai answers in words, not in tokens: it evaluates, and cannot train")


def _for_text(settings: TrainConfig) -> OpenAIEngine:
    return OpenAIEngine(settings.model, ServerOptions.of(settings.engine_options))


ENGINE = EngineSpec(_plays_only, _plays_only, for_text=_for_text, read_options=ServerOptions.of)
"""Plays through a server; it cannot train."""
