"""The engine ``openai``: any server with OpenAI's chat completions (vLLM, llama.cpp, Ollama, hosted ones)."""

from __future__ import annotations

import asyncio
import time

import numpy as np

from skillc_gym.errors import ServerError, needs_extra
from trainers.engines.openai_options import ServerOptions
from trainers.engines.registry import EngineSpec, refuse_training
from trainers.engines.text import TextReply, TextRequest, TransientError


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
