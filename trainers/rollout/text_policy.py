"""Whoever answers in words as a policy and as a writer: a server's model, or a function; and what it has said."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Hashable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

from skillc_gym.chat import Message
from skillc_gym.episodes import Episode
from skillc_gym.errors import ConfigError, TranscriptError
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
            self.entries = {entry["key"]: entry for entry in lines if entry and "key" in entry}
            if any(lines) or "model" not in (found or {}):  # else nothing has been played yet
                self._compare(wanted, found or {})
        replace_file(path, (json_line(entry) for entry in (wanted, *self.entries.values())))

    def add(self, key: str, entry: Mapping[str, Any]) -> None:
        """Writes an entry to the disk."""
        self.entries[key] = {"key": key, **entry}
        with storing(self.path), os.fdopen(open_new(self.path, append=True), "ab") as file:
            file.write(json_line(self.entries[key]))
            file.flush()
            os.fsync(file.fileno())

    def _compare(self, mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> None:
        # Journals of earlier versions go on.
        later = _LATER - theirs.keys()
        differing = [name for name in {**mine, **theirs} if theirs.get(name) != mine.get(name) and name not in later]
        if differing:
            pairs = [(name, *_parted(theirs.get(name), mine.get(name))) for name in differing]
            told = "; ".join(f"{name} was {was!r:.80}, is {now!r:.80}" for name, was, now in pairs)
            raise ConfigError(
                f"{self.path} belongs to something else: {told}. Use the same settings to go on with it, name another "
                "folder, or delete it"
            )


_LATER = {"tasks_sha256", "chat_sha256", "seed", "eval_temperature", "eval_greedy", "panel_seed", "evaluation"}


def _parted(one: Any, other: Any) -> tuple[Any, Any]:
    """Two values; of two mappings the entries that differ."""
    if not (isinstance(one, dict) and isinstance(other, dict)):
        return one, other
    names = [name for name in {**one, **other} if one.get(name) != other.get(name)]
    return {name: one.get(name) for name in names}, {name: other.get(name) for name in names}


def _read(line: bytes) -> dict[str, Any] | None:
    try:
        return parse_object(line)
    except ValueError:
        return None


@dataclass(frozen=True)
class _ChatRequest:
    key: Hashable
    chat: TextRequest


def _audible(said: Message) -> Message:
    """The message with a word in place of none: some servers refuse a chat with an empty turn."""
    if said["content"].strip():
        return said
    return {**said, "content": "(no reply)" if said["role"] == "assistant" else "(nothing)"}


@dataclass
class _TextConversation:
    seed: int
    messages: Sequence[Message]
    max_reply_tokens: int
    temperature: float
    usage: Usage = field(default_factory=Usage)

    def request(self, key: Hashable, turn: int, info: Mapping[str, Any]) -> _ChatRequest:
        seed = derive_seed(self.seed, turn) % 2**31
        chat = [*map(_audible, self.messages)]
        return _ChatRequest(key, TextRequest(chat, seed, self.max_reply_tokens, self.temperature))

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
        _wait_for(self._play(first, answer))

    async def _play(self, first: Callable[[], Sequence[_ChatRequest]], answer: Answer) -> None:
        async def ask(request: _ChatRequest) -> None:
            for following in answer([(request, await _reply(self.engine, request.chat))]):
                chats.create_task(ask(following))

        async with _side_by_side(self.engine) as chats:
            for request in first():
                chats.create_task(ask(request))

    def recall(self, job: Mapping[str, Any], sampling: Sampling) -> tuple[Episode, Usage] | None:
        """Looks into the journal; what the context cut is played again, since the server may have a longer one now."""
        entry = self._journal.entries.get(self._key(job, sampling)) if self._journal else None
        if entry is None or entry["episode"].get("cut") == "context":
            return None
        try:
            episode, usage = Episode.from_dict(entry["episode"]), Usage(**entry["usage"])
        except TranscriptError:  # of an environment whose reward once was no number
            return None
        self.used.append((job["condition"], usage))
        return episode, usage

    def keep(self, job: Mapping[str, Any], sampling: Sampling, talk: _TextConversation, episode: Episode) -> None:
        """Writes into the journal."""
        self.used.append((job["condition"], talk.usage))
        if self._journal is not None:
            entry = {"episode": episode.to_dict(), "usage": asdict(talk.usage)}
            self._journal.add(self._key(job, sampling), entry)

    def _key(self, job: Mapping[str, Any], sampling: Sampling) -> str:
        named = [dict(job), asdict(sampling), *([self._label] if self._label else [])]
        return hashlib.sha256(json.dumps(named).encode()).hexdigest()


class ServerChat:
    """Gives a reply to each chat, at temperature 0, "" to one too long; a journal keeps them."""

    def __init__(
        self, engine: TextEngine, *, seed: int, max_parallel: int, journal: Journal | None, max_tokens: int
    ) -> None:
        self._engine, self._seed, self._max_parallel, self._journal = engine, seed, max_parallel, journal
        self._max_tokens = max_tokens
        self.asked = 0
        """Questions so far."""
        self.usage = Usage()
        """What the replies used, those found in the journal included."""

    def __call__(self, chats: Sequence[Sequence[Message]]) -> list[str]:
        """Asks all questions at once."""
        numbers = range(self.asked, self.asked + len(chats))
        self.asked += len(chats)
        return _wait_for(self._ask(list(zip(numbers, chats, strict=True)))) if chats else []

    async def _ask(self, questions: Sequence[tuple[int, Sequence[Message]]]) -> list[str]:
        places = asyncio.Semaphore(self._max_parallel)

        async def ask(number: int, chat: Sequence[Message]) -> str:
            async with places:
                return await self._recorded(number, chat)

        async with _side_by_side(self._engine) as tasks:
            asked = [tasks.create_task(ask(number, chat)) for number, chat in questions]
        return [task.result() for task in asked]

    async def _recorded(self, number: int, chat: Sequence[Message]) -> str:
        key = hashlib.sha256(json.dumps(["writer", self._seed, number, list(chat)]).encode()).hexdigest()
        entry: Any = None if self._journal is None else self._journal.entries.get(key)
        # Earlier versions kept what did not fit, too, as an empty reply.
        if entry is None or not (entry["reply"] or entry["prompt_tokens"] or entry.get("given")):
            seed = derive_seed(self._seed, number) % 2**31
            request = TextRequest(list(chat), seed, max_tokens=self._max_tokens, temperature=0.0)
            reply = await _reply(self._engine, request)
            said = reply or TextReply("")
            entry = {
                "reply": said.text,
                "prompt_tokens": said.prompt_tokens,
                "completion_tokens": said.completion_tokens,
            }
            # What the context cut is asked again, since the server may have a longer one then.
            if self._journal is not None and reply is not None:
                self._journal.add(key, {**entry, "given": True})
        self.usage.count(entry["prompt_tokens"], entry["completion_tokens"])
        return str(entry["reply"])


async def _reply(engine: TextEngine, request: TextRequest) -> TextReply | None:
    """The engine's reply; None to a chat that is too long."""
    try:
        return await engine.reply(request)
    except ContextFullError:
        return None


@asynccontextmanager
async def _side_by_side(engine: TextEngine) -> AsyncIterator[asyncio.TaskGroup]:
    """Tasks that ask an engine at once: the first error of any is raised as it is, and connections are closed."""
    try:
        async with asyncio.TaskGroup() as tasks:
            yield tasks
    except BaseExceptionGroup as group:
        raise _first_error(group) from group
    finally:
        await engine.aclose()


def _wait_for(work: Coroutine[Any, Any, T]) -> T:
    """Runs to the end, in a thread of its own where an event loop runs already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    begun: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = Future()

    async def told() -> T:
        begun.set_result((asyncio.get_running_loop(), cast("asyncio.Task[Any]", asyncio.current_task())))
        return await work

    with ThreadPoolExecutor(max_workers=1) as thread:
        played = thread.submit(asyncio.run, told())
        try:
            # A signal that the system gave to another thread is heard between two waits.
            while not wait([played], timeout=0.2).done:
                continue
            return played.result()
        except BaseException:
            if not played.done():  # this thread was interrupted, and that one would play on to the end
                loop, task = begun.result()
                loop.call_soon_threadsafe(task.cancel)
            raise


def _first_error(group: BaseExceptionGroup[BaseException]) -> BaseException:
    error = group.exceptions[0]
    return _first_error(error) if isinstance(error, BaseExceptionGroup) else error
