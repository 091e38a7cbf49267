"""A language model behind a server, as a function from chats to replies."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence

from trainers.engines.text import ContextFullError, TextEngine, TextRequest
from trainers.evaluation.journal import Journal
from trainers.evaluation.usage import Usage
from trainers.evaluation.waiting import first_error, wait_for
from trainers.rollout.collect import derive_seed

__all__ = ["TextSpeaker"]

Message = dict[str, str]


class TextSpeaker:
    """Gives one reply to each chat, at temperature 0; a chat too long for the model has the reply "".

    Args:
        engine: Answers.
        seed: Decides the seeds of the requests.
        max_tokens: Longest reply.
        max_parallel: Most requests under way.
        journal: Where replies are kept, and found again; None for nowhere.
    """

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
        entry = None if self._journal is None else self._journal.entries.get(key)
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
