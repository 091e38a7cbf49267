"""A language model behind an engine, as a function from chats to replies."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trainers.base import Sampling
from trainers.engines.types import Engine, Request
from trainers.rollout.chat_tokens import ChatTokens

__all__ = ["EngineChat"]

Message = dict[str, str]


class EngineChat:
    """Gives one reply to each chat; the n-th question of a run always draws the same random numbers.

    Args:
        engine: Generates.
        chat: Turns messages into tokens.
        seed: Decides the draws.
        sampling: How tokens are drawn.
        max_tokens: Longest reply.
        max_context: Longest question and reply together; a question that leaves no room has the reply "". No limit if
            None.
    """

    def __init__(
        self,
        engine: Engine,
        chat: ChatTokens,
        *,
        seed: int,
        sampling: Sampling | None = None,
        max_tokens: int = 512,
        max_context: int | None = None,
    ) -> None:
        self._engine, self._chat, self._seed = engine, chat, seed
        self._sampling = sampling or Sampling(greedy=True)
        self._max_tokens, self._max_context = max_tokens, max_context
        self.asked = 0
        """Questions so far."""
        self.tokens_generated = 0
        """Tokens of all replies so far."""

    def __call__(self, chats: Sequence[Sequence[Message]]) -> list[str]:
        """Asks all questions in one batch."""
        asked = [self._request(number, chat) for number, chat in enumerate(chats, self.asked)]
        self.asked += len(asked)
        requests = [request for request in asked if request.max_tokens > 0]
        replies = self._engine.generate(requests, self._sampling) if requests else []
        self._engine.release([request.key for request in requests])
        self.tokens_generated += sum(len(reply.token_ids) for reply in replies)
        said = {request.key: reply.token_ids for request, reply in zip(requests, replies, strict=True)}
        return [self._chat.reply_text(said[request.key]) if request.key in said else "" for request in asked]

    def _request(self, number: int, chat: Sequence[Message]) -> Request:
        prompt = self._chat.prompt(list(chat))
        room = self._max_tokens if self._max_context is None else self._max_context - len(prompt)
        return Request(("writer", number), prompt, self._draw(number), min(self._max_tokens, room))

    def _draw(self, number: int) -> int:
        return int(np.random.SeedSequence([self._seed, number]).generate_state(1, np.uint64)[0])
