"""An engine of tokens that lets a function of the text play instead of a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from trainers.engines import Engine, Generation, Request, Sampling


class ScriptedEngine(Engine):
    """Asks the function for each reply, from the prompt in words; replies end with the end token, if not cut."""

    def __init__(self, policy: Callable[[str], str], tokenizer: Any) -> None:
        self.policy, self.tokenizer = policy, tokenizer

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Generation]:
        return [self._reply(request) for request in requests]

    def _reply(self, request: Request) -> Generation:
        text = self.policy(self.tokenizer.decode(list(request.prompt_ids), skip_special_tokens=False))
        ids = list(self.tokenizer.encode(text, add_special_tokens=False))
        ids = [*ids, self.tokenizer.eos_token_id][: request.max_tokens]
        return Generation(ids, [0.0] * len(ids))
