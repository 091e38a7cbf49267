"""A language model behind an engine, as a function from chats to replies."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trainers.engines.types import Engine, Request, Sampling
from trainers.rollout.chat_tokens import ChatTokens

__all__ = ["EngineSpeaker"]

Message = dict[str, str]


class EngineSpeaker:
    """Gives one reply to each chat; the n-th question of a run always draws the same random numbers.

    Args:
        engine: Generates.
        chat: Turns messages into tokens.
        seed: Decides the draws.
        sampling: How tokens are drawn.
        max_tokens: Longest reply.
    """

    def __init__(
        self, engine: Engine, chat: ChatTokens, *, seed: int, sampling: Sampling | None = None, max_tokens: int = 512
    ) -> None:
        self._engine, self._chat, self._seed = engine, chat, seed
        self._sampling = sampling or Sampling(greedy=True)
        self._max_tokens = max_tokens
        self.asked = 0
        """Questions so far."""
        self.tokens_generated = 0
        """Tokens of all replies so far."""

    def __call__(self, chats: Sequence[Sequence[Message]]) -> list[str]:
        """Asks all questions in one batch."""
        requests = [
            Request(("writer", i), self._chat.prompt(list(chat)), self._draw(i), self._max_tokens)
            for i, chat in enumerate(chats, self.asked)
        ]
        self.asked += len(requests)
        replies = self._engine.generate(requests, self._sampling)
        self._engine.release([request.key for request in requests])
        self.tokens_generated += sum(len(reply.token_ids) for reply in replies)
        return [self._chat.reply_text(reply.token_ids) for reply in replies]

    def _draw(self, number: int) -> int:
        return int(np.random.SeedSequence([self._seed, number]).generate_state(1, np.uint64)[0])
