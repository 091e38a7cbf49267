"""Replies from a plain function: for tests, floors and replays."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from trainers.base import Sampling
from trainers.engines.types import Generation, Request

__all__ = ["ScriptedEngine"]


class ScriptedEngine:
    """Lets a function of the text play instead of a model.

    Args:
        policy: Called with the prompt decoded to text (special tokens kept); returns the reply.
        tokenizer: A transformers tokenizer, or anything with ``encode``, ``decode`` and ``eos_token_id``.

    Examples:
        >>> ScriptedEngine(lambda prompt: "<action>look</action>", tokenizer)  # doctest: +SKIP
    """

    def __init__(self, policy: Callable[[str], str], tokenizer: Any) -> None:
        self.policy = policy
        self.tokenizer = tokenizer

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Generation]:
        """Asks the function once per request; replies end with the end token unless they are cut."""
        return [self._reply(request) for request in requests]

    def _reply(self, request: Request) -> Generation:
        text = self.policy(self.tokenizer.decode(list(request.prompt_ids), skip_special_tokens=False))
        ids = list(self.tokenizer.encode(text, add_special_tokens=False))
        ids = [*ids, self.tokenizer.eos_token_id][: request.max_tokens]
        return Generation(ids, [0.0] * len(ids))

    def release(self, keys: Iterable[Hashable]) -> None:
        """Nothing is kept."""

    def reset(self) -> None:
        """Nothing is kept."""
