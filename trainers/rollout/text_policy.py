"""Whoever answers in words as a policy: a server's model, or a function of the user's own; and what it has played."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import Callable, Coroutine, Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from skillc_gym.chat import Message
from skillc_gym.episodes import Episode
from skillc_gym.errors import ConfigError
from skillc_gym.files import open_new, replace_file, storing
from trainers.base import Sampling, TokenRow, Usage
from trainers.engines.random import derive_seed
from trainers.engines.text import ContextFullError, TextEngine, TextReply, TextRequest
from trainers.rollout.policies import Answer, Policy
from trainers.tracking.files import json_line, parse_object

T = TypeVar("T")


class Journal:
    """Entries by key in a file of JSON lines, whose first line says what evaluation it is; another's is a ConfigError.

    An entry is in the file as soon as :meth:`add` returns. Lines that cannot be read (the last one, if the machine went
    down while it was written) are dropped when the journal is opened: their episodes are played again.
    """

    def __init__(self, path: Path, header: Mapping[str, Any]) -> None:
        self.path = path
        self.entries: dict[str, Mapping[str, Any]] = {}
        wanted = json.loads(json.dumps(header))
        if path.exists():
            found, *lines = [_read(line) for line in path.read_bytes().split(b"\n")]
            self._compare(wanted, found or {})
            self.entries = {entry["key"]: entry for entry in lines if entry and "key" in entry}
        replace_file(path, (json_line(entry) for entry in (wanted, *self.entries.values())))

    def add(self, key: str, entry: Mapping[str, Any]) -> None:
        """Writes an entry to the disk."""
        self.entries[key] = {"key": key, **entry}
        with storing(self.path), os.fdopen(open_new(self.path, append=True), "ab") as file:
            file.write(json_line(self.entries[key]))
            file.flush()
            os.fsync(file.fileno())

    def _compare(self, mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> None:
        differing = [name for name in {**mine, **theirs} if theirs.get(name) != mine.get(name)]
        if differing:
            told = "; ".join(f"{name} was {theirs.get(name)!r:.80}, is {mine.get(name)!r:.80}" for name in differing)
            raise ConfigError(
                f"{self.path} belongs to another evaluation: {told}. Use the same settings to go on with it, or name "
                "another folder"
            )


def _read(line: bytes) -> dict[str, Any] | None:
    try:
        return parse_object(line)
    except ValueError:
        return None


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


class TextPolicy(Policy):
    """An engine that answers in words: no episode waits for the slow reply of another.

    Finished episodes are kept in the journal, if there is one, and found again; ``label`` sets those apart that are
    asked for alike, but shown other things. ``used`` has condition and usage of every episode so far.
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
        """Asks for all replies at once, in a notebook's event loop too; a ServerError leaves what is finished."""
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

    def recall(self, job: Mapping[str, Any], sampling: Sampling) -> tuple[Episode, Usage] | None:
        """Looks into the journal."""
        entry = self._journal.entries.get(self._key(job, sampling)) if self._journal else None
        if entry is None:
            return None
        usage = Usage(**entry["usage"])
        self.used.append((job["condition"], usage))
        return Episode.from_dict(entry["episode"]), usage

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
