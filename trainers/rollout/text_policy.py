"""Whoever answers in words as a policy: a server's model, or a function of the user's own."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Coroutine, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from skillc_gym.chat import Message
from skillc_gym.episodes import Episode
from trainers.base import Sampling, TokenRow
from trainers.engines.random import derive_seed
from trainers.engines.text import ContextFullError, TextEngine, TextReply, TextRequest
from trainers.rollout.journal import Journal
from trainers.rollout.policies import Answer

T = TypeVar("T")


@dataclass
class Usage:
    """Sums over the replies of an episode."""

    requests: int = 0
    """Replies."""
    prompt_tokens: int = 0
    """Tokens read."""
    completion_tokens: int = 0
    """Tokens written."""

    def count(self, prompt_tokens: int, completion_tokens: int) -> None:
        """Adds one reply."""
        self.requests += 1
        self.prompt_tokens += prompt_tokens
        self.completion_tokens += completion_tokens


@dataclass(frozen=True)
class _ChatRequest:
    key: Hashable
    chat: TextRequest


@dataclass
class _TextConversation:
    seed: int
    messages: Sequence[Message]
    max_reply_tokens: int
    temperature: float
    usage: Usage = field(default_factory=Usage)

    def request(self, key: Hashable, turn: int, info: Mapping[str, Any]) -> _ChatRequest:
        seed = derive_seed(self.seed, turn) % 2**31
        return _ChatRequest(key, TextRequest(self.messages, seed, self.max_reply_tokens, self.temperature))

    def reply(self, reply: TextReply) -> str:
        self.usage.count(reply.prompt_tokens, reply.completion_tokens)
        return reply.text.strip()

    def observe(self, info: Mapping[str, Any]) -> None:
        self.messages = info["messages"]

    def rows(self) -> list[TokenRow]:
        return []


class TextPolicy:
    """An engine that answers in words: no episode waits for the slow reply of another.

    Args:
        engine: Answers.
        max_reply_tokens: Longest reply.
        journal: Where finished episodes are kept, and found again; None for nowhere.
        label: Sets episodes apart in the journal that are asked for alike, but shown other things.

    Attributes:
        used: Condition and usage of every episode so far.
    """

    streams = True

    def __init__(
        self, engine: TextEngine, *, max_reply_tokens: int = 512, journal: Journal | None = None, label: str = ""
    ) -> None:
        self.engine, self.used = engine, list[tuple[int, Usage]]()
        self._max_reply_tokens, self._journal, self._label = max_reply_tokens, journal, label

    def begin(
        self, infos: Sequence[Mapping[str, Any]], seeds: Sequence[int], sampling: Sampling
    ) -> list[_TextConversation]:
        """Starts chats."""
        temperature = 0.0 if sampling.greedy else sampling.temperature
        return [
            _TextConversation(seed, info["messages"], self._max_reply_tokens, temperature)
            for info, seed in zip(infos, seeds, strict=True)
        ]

    def play(self, first: Callable[[], Sequence[_ChatRequest]], answer: Answer, sampling: Sampling) -> None:
        """Asks for all replies at once; works in a notebook's event loop too.

        Raises:
            ServerError: The engine gave up; finished episodes are in the journal.
        """
        wait_for(self._play(first, answer))

    async def _play(self, first: Callable[[], Sequence[_ChatRequest]], answer: Answer) -> None:
        async def ask(request: _ChatRequest) -> None:
            for following in answer([(request, await self._reply(request.chat))]):
                chats.create_task(ask(following))

        try:
            async with asyncio.TaskGroup() as chats:
                for request in first():
                    chats.create_task(ask(request))
        except BaseExceptionGroup as group:
            raise first_error(group) from group
        finally:
            await self.engine.aclose()

    async def _reply(self, chat: TextRequest) -> TextReply | None:
        try:
            return await self.engine.reply(chat)
        except ContextFullError:
            return None

    def release(self, keys: Iterable[Hashable]) -> None:
        """Servers forget by themselves."""

    def recall(self, job: Mapping[str, Any], sampling: Sampling) -> Episode | None:
        """Looks into the journal."""
        entry = self._journal.entries.get(self._key(job, sampling)) if self._journal else None
        if entry is None:
            return None
        self.used.append((job["condition"], Usage(**entry["usage"])))
        return Episode.from_dict(entry["episode"])

    def keep(self, job: Mapping[str, Any], sampling: Sampling, talk: _TextConversation, episode: Episode) -> None:
        """Writes into the journal."""
        self.used.append((job["condition"], talk.usage))
        if self._journal is not None:
            entry = {"episode": episode.to_dict(), "usage": asdict(talk.usage)}
            self._journal.add(self._key(job, sampling), entry)

    def _key(self, job: Mapping[str, Any], sampling: Sampling) -> str:
        named = [dict(job), asdict(sampling), *([self._label] if self._label else [])]
        return hashlib.sha256(json.dumps(named).encode()).hexdigest()


def wait_for(work: Coroutine[Any, Any, T]) -> T:
    """Runs to the end, in a thread of its own where an event loop runs already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(asyncio.run, work).result()


def first_error(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first of the errors that tasks side by side have raised."""
    error = group.exceptions[0]
    return first_error(error) if isinstance(error, BaseExceptionGroup) else error
