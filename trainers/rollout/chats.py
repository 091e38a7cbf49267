"""A language model as a function from chats to replies, behind an engine of tokens or of words."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence
from typing import Any

from skillc_gym.chat import Message
from trainers.base import Sampling, Usage
from trainers.engines.random import derive_seed
from trainers.engines.text import ContextFullError, TextEngine, TextRequest
from trainers.engines.types import Engine, Request
from trainers.rollout.chat_tokens import ChatTokens
from trainers.rollout.text_policy import Journal, first_error, wait_for


class EngineChat:
    """Gives one reply to each chat, greedily, "" where none fits; ``fresh`` weights are taken in before each batch."""

    def __init__(
        self,
        engine: Engine,
        chat: ChatTokens,
        *,
        seed: int,
        max_tokens: int = 512,
        max_context: int | None = None,
        fresh: bool = False,
    ) -> None:
        self._engine, self._chat, self._seed, self._fresh = engine, chat, seed, fresh
        self._max_tokens, self._max_context = max_tokens, max_context
        self.asked = self.tokens_generated = 0
        """Questions, and tokens of all replies, so far."""

    def __call__(self, chats: Sequence[Sequence[Message]]) -> list[str]:
        """Asks all questions in one batch."""
        asked = [self._request(number, chat) for number, chat in enumerate(chats, self.asked)]
        self.asked += len(asked)
        requests = [request for request in asked if request.max_tokens > 0]
        self._take_in()
        replies = self._engine.generate(requests, Sampling(greedy=True)) if requests else []
        self._engine.release([request.key for request in requests])
        self._take_in()
        self.tokens_generated += sum(len(reply.token_ids) for reply in replies)
        said = {request.key: reply.token_ids for request, reply in zip(requests, replies, strict=True)}
        return [self._chat.reply_text(said[request.key]) if request.key in said else "" for request in asked]

    def _take_in(self) -> None:
        if self._fresh:
            self._engine.reset()

    def _request(self, number: int, chat: Sequence[Message]) -> Request:
        prompt = self._chat.prompt(list(chat))
        room = self._max_tokens if self._max_context is None else self._max_context - len(prompt)
        return Request(("writer", number), prompt, derive_seed(self._seed, number), min(self._max_tokens, room))


class ServerChat:
    """Gives one reply to each chat, at temperature 0, "" to one too long; the journal keeps them, if there is one."""

    def __init__(
        self,
        engine: TextEngine,
        *,
        seed: int,
        max_tokens: int = 512,
        max_parallel: int = 32,
        journal: Journal | None = None,
    ) -> None:
        self._engine, self._seed, self._max_tokens = engine, seed, max_tokens
        self._max_parallel, self._journal = max_parallel, journal
        self.asked = 0
        """Questions so far."""
        self.usage = Usage()
        """What the replies used, those found in the journal included."""

    def __call__(self, chats: Sequence[Sequence[Message]]) -> list[str]:
        """Asks all questions at once."""
        numbers = range(self.asked, self.asked + len(chats))
        self.asked += len(chats)
        return wait_for(self._ask(list(zip(numbers, chats, strict=True)))) if chats else []

    async def _ask(self, questions: Sequence[tuple[int, Sequence[Message]]]) -> list[str]:
        places = asyncio.Semaphore(self._max_parallel)

        async def ask(number: int, chat: Sequence[Message]) -> str:
            async with places:
                return await self._recorded(number, chat)

        try:
            async with asyncio.TaskGroup() as group:
                asked = [group.create_task(ask(number, chat)) for number, chat in questions]
        except BaseExceptionGroup as errors:
            raise first_error(errors) from errors
        finally:
            await self._engine.aclose()
        return [task.result() for task in asked]

    async def _recorded(self, number: int, chat: Sequence[Message]) -> str:
        key = hashlib.sha256(json.dumps(["writer", self._seed, number, list(chat)]).encode()).hexdigest()
        entry: Any = None if self._journal is None else self._journal.entries.get(key)
        if entry is None:
            text, read, written = await self._reply(number, chat)
            entry = {"reply": text, "prompt_tokens": read, "completion_tokens": written}
            if self._journal is not None:
                self._journal.add(key, entry)
        self.usage.count(entry["prompt_tokens"], entry["completion_tokens"])
        return str(entry["reply"])

    async def _reply(self, number: int, chat: Sequence[Message]) -> tuple[str, int, int]:
        seed = derive_seed(self._seed, number) % 2**31
        try:
            reply = await self._engine.reply(TextRequest(list(chat), seed, self._max_tokens, 0.0))
        except ContextFullError:
            return "", 0, 0
        return reply.text, reply.prompt_tokens, reply.completion_tokens
