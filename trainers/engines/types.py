"""What the trainers ask of whoever generates tokens."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from trainers.base import Sampling


@dataclass(frozen=True)
class Request:
    """One reply to be generated."""

    key: Hashable
    """Names the conversation: requests whose prompt continues an earlier one of the same key reuse its cache."""
    prompt_ids: Sequence[int]
    """Everything said so far, in tokens; never empty."""
    seed: int
    """With the turn and a token's place in its reply it determines that token's random number, whatever else is in the
    batch and however long the prompt is."""
    max_tokens: int = 64
    """Longest reply, the end token included."""
    turn: int | None = None
    """Number of the reply in its conversation; None lets the prompt's length stand for it."""
    choices: Sequence[Sequence[int]] = ()
    """Replies among which a :class:`ChoosingEngine` chooses, each with the token that ends it: none begins another."""

    @property
    def stream(self) -> int:
        """Which of the seed's streams of random numbers the reply takes."""
        return len(self.prompt_ids) if self.turn is None else self.turn


@dataclass(frozen=True)
class Generation:
    """A reply: its tokens, the end token included where one was generated, and their log-probabilities."""

    token_ids: list[int]
    logprobs: list[float] = field(default_factory=list)
    allowed: list[tuple[int, ...]] = field(default_factory=list)
    """Of a reply drawn along its choices, the tokens among which each was drawn: over these its log-probability is
    normalised, and a single one was forced. Empty where every token of the vocabulary could follow."""


@runtime_checkable
class Engine(Protocol):
    """Generates replies for a batch of conversations, whose state it may keep between calls."""

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Generation]:
        """Generates one reply per request, in the order of the requests."""

    def release(self, keys: Iterable[Hashable]) -> None:
        """Forgets conversations that will not be continued; unknown keys are ignored."""
        return

    def reset(self) -> None:
        """Forgets all conversations, for instance because the weights have changed."""
        return


@runtime_checkable
class ChoosingEngine(Engine, Protocol):
    """An engine that chooses among the replies that a request brings."""

    def worded(self, commands: Sequence[str]) -> list[str]:
        """The replies that give commands; those that it never gives are left out."""


Answer = Callable[[Sequence[tuple[Request, Generation]]], Sequence[Request]]
"""Takes finished replies; returns the requests that follow from them."""


@runtime_checkable
class StreamingEngine(Engine, Protocol):
    """An engine in which no reply waits for another one to end."""

    def stream(self, requests: Sequence[Request], sampling: Sampling, answer: Answer) -> None:
        """Generates replies, and those to what ``answer`` makes of them, until nothing is asked any more."""


def stream(engine: Engine, requests: Sequence[Request], sampling: Sampling, answer: Answer) -> None:
    """Streams with an engine that can, and goes turn by turn with one that cannot; see :class:`StreamingEngine`."""
    if isinstance(engine, StreamingEngine):
        engine.stream(requests, sampling, answer)
        return
    while requests:
        replies = engine.generate(requests, sampling)
        requests = answer(list(zip(requests, replies, strict=True)))
