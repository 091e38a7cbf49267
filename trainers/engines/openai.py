"""The engine ``openai``: any server with OpenAI's chat completions (vLLM, llama.cpp, Ollama, hosted ones)."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from skillc_gym.errors import ConfigError, ServerError, needs_extra
from trainers.base import Count, Natural, NotNegative, Positive, check_values
from trainers.engines.registry import EngineSpec, read_options, refuse_training
from trainers.engines.text import TextReply, TextRequest, TransientError

_KEY_VARIABLE = "OPENAI_API_KEY"


@dataclass(frozen=True)
class ServerOptions:
    """Where the server is, how patient to be with it, and what it may cost; no secret may be in it (ConfigError)."""

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
    """Seconds before the first repetition, doubled with each further one; a server's Retry-After if that is longer."""
    longest_wait: Positive = 120.0
    """Longest wait in seconds, a server's own wish included."""
    requests_per_minute: Positive | None = None
    """Most requests per minute; no limit if None."""
    token_budget: Count | None = None
    """Tokens, read and written since the command began, after which it stops; what was played is kept. None: none."""
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
        try:
            address = urlsplit(self.base_url)
            good = address.scheme in ("http", "https") and address.hostname and address.port != 0
            good = good and self.base_url.isprintable()  # what is not, urlsplit leaves out
        except ValueError:  # of a port out of range, or a bracket that is open
            good = False
        if not good:
            raise ConfigError(f"engine.base_url must be like http://host:port/v1, got {self.base_url!r}")
        if (self.input_price is None) != (self.output_price is None):
            raise ConfigError("engine.input_price and engine.output_price belong together; give 0 for what is free")
        if address.username or address.password or address.query:
            raise ConfigError("engine.base_url must not carry a user name, a password or a query: it is recorded")

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> ServerOptions:
        """Reads a run's options; errors for one that is not there, and for a key: options are recorded."""
        for name in ("api_key", "key"):
            if name in options:
                raise ConfigError(
                    f"engine.{name} would be recorded with the run; put the key into {_KEY_VARIABLE}, or name another "
                    "environment variable with engine.key_variable"
                )
        return read_options(cls, "openai", options)

    def key(self) -> str | None:
        """The key from the environment, or None; a ConfigError if its named variable is not set, or no key."""
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


class RateLimiter:
    """Spaces requests evenly (``per_minute``, None for no limit), and holds all back when the server asks for it."""

    def __init__(self, per_minute: float | None) -> None:
        self._interval = 60.0 / per_minute if per_minute else 0.0
        self._next, self._turn = 0.0, asyncio.Lock()

    async def wait(self) -> None:
        """Returns when the next request may be sent."""
        # One waits for its time, the others for the lock: what is queued is held back by a later `hold` too.
        async with self._turn:
            while (left := self._next - time.monotonic()) > 0:
                await asyncio.sleep(left)
            self._next = time.monotonic() + self._interval

    def hold(self, seconds: float) -> None:
        """Sends nothing for some seconds."""
        self._next = max(self._next, time.monotonic() + seconds)

    def reset(self) -> None:
        """Makes ready for another event loop, to which a lock belongs; when the next one may be sent stays."""
        self._turn = asyncio.Lock()


class OpenAIEngine:
    """Answers by asking a server, again where that may help.

    Tried again: statuses 408, 409, 425, 429 and 5xx, broken connections, timeouts, answers that cannot be read or end
    in the middle. Not tried again: any other refusal, and a quota that is used up. The key is read from the environment
    when the engine is made (ConfigError if it is named and not set, or is no key), is sent, and is told nowhere else.
    ``spent_tokens`` are those read and written so far, ``repeated`` the requests that had to be tried again.
    """

    def __init__(self, model: str, options: ServerOptions | None = None) -> None:
        with needs_extra("openai", "openai"):
            from trainers.engines.openai_client import ServerClient
        self.model, self.options = model, options or ServerOptions()
        self.spent_tokens = self.repeated = 0
        self._client = ServerClient(model, self.options, self.options.key())
        self._limiter = RateLimiter(self.options.requests_per_minute)
        self._jitter = np.random.default_rng(0)
        # A server that was there may come back; an address at which there never was one is mistyped, most likely.
        self._reached = False

    async def reply(self, request: TextRequest) -> TextReply:
        """Asks until there is an answer; errors as of :class:`trainers.engines.text.TextEngine`."""
        # The package's own repetitions are off: they know no limit of requests per minute and no half answers.
        for attempt in range(self.options.retries + 1):
            self._check_budget()
            await self._limiter.wait()
            try:
                reply = await self._client.ask(request)
            except TransientError as error:
                self._reached |= error.reached
                if attempt == (self.options.retries if self._reached else min(2, self.options.retries)):
                    tries = f"{attempt + 1} tries" if attempt else "one try"
                    raise ServerError(
                        f"{self.options.base_url} gave no answer in {tries}; the last one: {error}. Is the "
                        "server up, and is engine.base_url its address? An evaluation keeps what was played: "
                        "run the same command again"
                    ) from error
                self.repeated += 1
                await self._back_off(attempt, error)
            else:
                self._reached = True
                self._count(reply)
                return reply
        raise AssertionError("the last attempt returns or raises")

    async def aclose(self) -> None:
        """Closes the connections."""
        self._limiter.reset()
        await self._client.aclose()

    async def _back_off(self, attempt: int, error: TransientError) -> None:
        wait = self.options.first_wait * 2.0 ** min(attempt, 64) * (0.5 + 0.5 * float(self._jitter.random()))
        if error.wait is not None:
            # What one request is told holds for all of them; a server may tell a second, and be busy for many.
            self._limiter.hold(min(error.wait, self.options.longest_wait))
            wait = max(wait, error.wait)
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
                f"The budget of {budget:,} tokens is spent ({self.spent_tokens:,}). An evaluation keeps what was "
                "played: raise engine.token_budget and run the same command again"
            )


ENGINE = EngineSpec(
    lambda _: refuse_training("openai"),
    lambda _: refuse_training("openai"),
    for_text=lambda settings: OpenAIEngine(settings.model, ServerOptions.of(settings.engine_options)),
    read_options=ServerOptions.of,
)
"""Plays through a server; it cannot train."""
