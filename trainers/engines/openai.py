"""The engine ``openai``: any server with OpenAI's chat completions (vLLM, llama.cpp, Ollama, hosted ones)."""

from __future__ import annotations

import asyncio
from typing import Any, NoReturn

import numpy as np

from skillc_gym.errors import ConfigError, ServerError, missing_extra
from trainers.engines.openai_options import ServerOptions
from trainers.engines.openai_wire import (
    BrokenReplyError,
    parse_reply,
    request_body,
    retry_after,
    said_in_error,
    says_context_is_full,
)
from trainers.engines.registry import EngineSettings, EngineSpec
from trainers.engines.text import ContextFullError, TextReply, TextRequest

__all__ = ["ENGINE", "OpenAIEngine", "RateLimiter"]

_TRANSIENT = frozenset({408, 409, 425, 429})
"""Statuses below 500 that pass by themselves."""


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


class _TransientError(Exception):
    """A failure that may pass."""

    def __init__(self, words: str, wait: float | None = None) -> None:
        super().__init__(words)
        self.wait = wait


class OpenAIEngine:
    """Answers by asking a server, again where that may help.

    Tried again: statuses 408, 409, 425, 429 and 5xx, broken connections, timeouts, answers that end in the middle.
    Not tried again: any other refusal, and a quota that is used up. The key is read from the environment when the
    engine is made, is sent, and is told nowhere else.

    Args:
        model: What the server calls the model.
        options: Where and how to ask.

    Raises:
        MissingExtraError: httpx is not installed.
        ConfigError: The key's environment variable is named and not set.
    """

    def __init__(self, model: str, options: ServerOptions | None = None) -> None:
        try:
            import httpx
        except ImportError as error:
            raise missing_extra("httpx", "openai") from error
        self.model, self.options = model, options or ServerOptions()
        self.spent_tokens = 0
        """Tokens read and written so far."""
        self.repeated = 0
        """Requests that had to be tried again."""
        self._key = self.options.key()
        self._httpx = httpx
        self._client: Any = None
        self._limiter = RateLimiter(self.options.requests_per_minute)
        self._jitter = np.random.default_rng(0)

    async def reply(self, request: TextRequest) -> TextReply:
        """Asks until there is an answer.

        Raises:
            ContextFullError: The server says that the chat is too long.
            ServerError: The server refuses, stays broken, or the budget is spent; the message says what to do.
        """
        body = request_body(self.model, request, self.options)
        for attempt in range(self.options.retries + 1):
            self._check_budget()
            await self._limiter.wait()
            try:
                reply = await self._ask(body)
            except _TransientError as error:
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
        client, self._client = self._client, None
        self._limiter.reset()
        if client is not None:
            await client.aclose()

    async def _ask(self, body: dict[str, Any]) -> TextReply:
        httpx = self._httpx
        try:
            async with asyncio.timeout(self.options.deadline):
                answer = await self._open().post("chat/completions", json=body)
        except (httpx.TransportError, TimeoutError) as error:
            raise _TransientError(f"{type(error).__name__}: {error}") from error
        if answer.is_error:
            self._refuse(answer)
        try:
            return parse_reply(answer.text, answer.headers.get("content-type", ""))
        except BrokenReplyError as error:
            raise _TransientError(f"an answer that cannot be read ({error})") from error

    def _open(self) -> Any:
        if self._client is None:
            headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
            self._client = self._httpx.AsyncClient(
                base_url=self.options.base_url.rstrip("/") + "/",
                headers=headers,
                timeout=self._httpx.Timeout(self.options.timeout, pool=None),
                limits=self._httpx.Limits(max_connections=None, max_keepalive_connections=None),
            )
        return self._client

    def _refuse(self, answer: Any) -> NoReturn:
        message, code = said_in_error(answer.text)
        words = self._without_key(f"status {answer.status_code}: {message or 'no reason given'}")
        if answer.status_code in (400, 413, 422) and says_context_is_full(message, code):
            raise ContextFullError(words)
        if code != "insufficient_quota" and (answer.status_code in _TRANSIENT or answer.status_code >= 500):
            raise _TransientError(words, retry_after(answer.headers))
        raise ServerError(f"{self.options.base_url} refuses the model {self.model!r}: {words}")

    async def _back_off(self, attempt: int, error: _TransientError) -> None:
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

    def _gave_up(self, error: _TransientError) -> ServerError:
        tries = self.options.retries + 1
        return ServerError(
            f"{self.options.base_url} gave no answer in {tries} tries; the last one: {self._without_key(str(error))}. "
            "Is the server up, and is engine.base_url its address? What was played is kept: run the same command again"
        )

    def _without_key(self, words: str) -> str:
        return words.replace(self._key, "[key]") if self._key else words


def _plays_only(_: Any) -> NoReturn:
    raise ConfigError("engine=openai answers in words, not in tokens: it evaluates, and cannot train")


def _for_text(settings: EngineSettings) -> OpenAIEngine:
    return OpenAIEngine(settings.model, ServerOptions.of(settings.engine_options))


ENGINE = EngineSpec(_plays_only, _plays_only, for_text=_for_text)
"""Plays through a server; it cannot train."""
