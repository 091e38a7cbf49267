"""Who answers in a rollout: what the loop asks of a policy; engines of tokens as one, and as a writer."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from skillc_gym.chat import Message
from skillc_gym.envs.base import LEFT_OPEN, leaves_words
from skillc_gym.episodes import Episode
from skillc_gym.errors import ConfigError
from trainers.base import Sampling, TokenRow, Usage
from trainers.engines.random import derive_seed
from trainers.engines.types import ChoosingEngine, Engine, Generation, Request, StreamingEngine, stream
from trainers.rollout.chat_tokens import ChatTokens
from trainers.rollout.rows import ConversationRows, RowBuilder, RowsWithoutThoughts, WindowRows

Answer = Callable[[Sequence[tuple[Any, Any]]], Sequence[Any]]


class Conversation(Protocol):
    """One episode as its policy sees it."""

    usage: Usage
    """What it has read and written so far."""

    def request(self, key: Hashable, turn: int, info: Mapping[str, Any]) -> Any | None:
        """What is to be answered next, an object with a ``key``; None if there is no room left for a reply."""

    def reply(self, reply: Any) -> str:
        """Takes in what the policy answered; returns it in words."""

    def observe(self, info: Mapping[str, Any]) -> None:
        """Takes in what the environment answered: the messages of the prompt wrapper."""

    def rows(self) -> list[TokenRow]:
        """What can be trained on, once the episode has ended."""


class Policy(Protocol):
    """Answers conversations. Requests and replies are the policy's own affair; a reply None ends the episode."""

    @property
    def streams(self) -> bool:
        """Whether no reply waits for another one to end."""

    def begin(
        self, infos: Sequence[Mapping[str, Any]], seeds: Sequence[int], sampling: Sampling
    ) -> Sequence[Conversation]:
        """Starts the conversations of a group, from the infos of its reset and a seed for each."""

    def play(self, first: Callable[[], Sequence[Any]], answer: Answer, sampling: Sampling) -> None:
        """Answers the first requests, and those that follow from the answers, until nothing is asked any more."""

    def release(self, keys: Iterable[Hashable]) -> None:
        """Forgets conversations that have ended."""
        return

    def recall(self, job: Mapping[str, Any], sampling: Sampling) -> tuple[Episode, Usage] | None:
        """The episode of a job that was played before an interruption; None if it is to be played."""
        return None

    def keep(self, job: Mapping[str, Any], sampling: Sampling, talk: Any, episode: Episode) -> None:
        """Told of every episode that has ended."""
        return


class TokenPolicy(Policy):
    """An engine that answers in tokens; an episode is one row where the chat grows, else one row per turn.

    An episode whose row would exceed ``max_context`` ends, truncated. Members of a group have the same room after their
    first prompts, so that the two conditions are cut alike. Limits without room for a reply are a ConfigError.
    """

    def __init__(self, engine: Engine, chat: ChatTokens, *, max_reply_tokens: int, max_context: int) -> None:
        if max_reply_tokens < 1 or max_context <= max_reply_tokens:
            raise ConfigError(
                f"max_context ({max_context}) must exceed max_reply_tokens ({max_reply_tokens}), and both be positive."
            )
        self.engine, self.chat = engine, chat
        self.max_reply_tokens, self.max_context = max_reply_tokens, max_context

    @property
    def streams(self) -> bool:
        """Whether the engine does."""
        return isinstance(self.engine, StreamingEngine)

    def begin(
        self, infos: Sequence[Mapping[str, Any]], seeds: Sequence[int], sampling: Sampling
    ) -> list[_TokenConversation]:
        """Gives every member the room that the group's longest first prompt leaves."""
        rows = [self._rows(info["messages"]) for info in infos]
        lengths = [len(each.prompt()) for each in rows]
        limits = [self.max_context - (max(lengths) - length) for length in lengths]
        return [_TokenConversation(self, *each) for each in zip(rows, seeds, limits, strict=True)]

    def play(self, first: Callable[[], Sequence[Request]], answer: Answer, sampling: Sampling) -> None:
        """Plays with the engine's present weights."""
        self.engine.reset()
        stream(self.engine, first(), sampling, answer)
        self.engine.reset()

    def release(self, keys: Iterable[Hashable]) -> None:
        """Frees the engine's caches."""
        self.engine.release(keys)

    def _rows(self, opening: Sequence[Message]) -> RowBuilder:
        if not self.chat.growing:
            return WindowRows(self.chat, opening)
        thoughtless = self.chat.thoughts == "drop"
        return RowsWithoutThoughts(self.chat, opening) if thoughtless else ConversationRows(self.chat, opening)


@dataclass
class _TokenConversation:
    policy: TokenPolicy
    builder: RowBuilder
    seed: int
    limit: int
    """Longest row."""
    usage: Usage = field(default_factory=Usage)
    read: int = 0
    """Tokens of the last prompt."""

    def request(self, key: Hashable, turn: int, info: Mapping[str, Any]) -> Request | None:
        prompt, policy = self.builder.prompt(), self.policy
        room, self.read = self.limit - len(prompt), len(prompt)
        if room <= 0:
            return None
        possible = _choices(policy.engine, policy.chat, info)
        if possible and min(map(len, possible)) > room:
            return None
        return Request(key, prompt, self.seed, min(policy.max_reply_tokens, room), turn=turn, choices=possible)

    def reply(self, reply: Generation) -> str:
        self.usage.count(self.read, len(reply.token_ids))
        self.builder.reply(reply)
        return self.policy.chat.reply_text(reply.token_ids)

    def observe(self, info: Mapping[str, Any]) -> None:
        self.builder.observe(info)

    def rows(self) -> list[TokenRow]:
        return self.builder.rows()


def _choices(engine: Engine, chat: ChatTokens, info: Mapping[str, Any]) -> tuple[tuple[int, ...], ...]:
    """The tokens of every reply that gives a possible command; none for an engine that generates."""
    if not isinstance(engine, ChoosingEngine):
        return ()
    commands = possible_commands(info)
    if not commands:
        raise ConfigError(
            "This engine chooses among the commands that an environment lists (admissible_commands), and none "
            "are listed here; take engine=transformers."
        )
    return tuple(tuple(chat.reply_ids(reply)) for reply in engine.worded(commands))


def possible_commands(info: Mapping[str, Any]) -> list[str]:
    """The listed commands; where one leaves words to the agent (``search[<query>]``), the goal's stand in."""
    goal = str(info.get("goal", ""))
    listed = info.get("admissible_commands") or ()
    filled = (LEFT_OPEN.sub(lambda _: goal, each) if leaves_words(each, info) else each for each in listed)
    return list(dict.fromkeys(filled))


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
