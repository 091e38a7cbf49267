"""Drafts of what is said next, taken from what was said before, which one pass of the model confirms or refuses.

This is speculative decoding (Leviathan, Kalman and Matias, arXiv 2211.17192) with n-grams in place of a draft model.
Every token is drawn by the random number of its place in the reply, so a drafted token stands where the draw gives
that very token: replies are those without drafts, up to rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from trainers.base import Sampling
from trainers.engines.batching import Batch, Ints, draw
from trainers.engines.random import uniforms

_CONTEXTS = (8, 5, 3, 2, 1)
"""Lengths of the contexts that are looked up, the longest that is known first."""


class Drafts:
    """Which tokens (at most ``most``) are likely to be said next: those that mostly followed the same others before."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._followed: dict[tuple[int, ...], tuple[int, int]] = {}

    def learn(self, prompt: Ints, reply: Sequence[int]) -> None:
        """Remembers a reply, and how it follows its prompt."""
        if not self.most:
            return
        # The prompt's end is context alone: what the environment says is never drafted.
        said = [*prompt[-_CONTEXTS[0] :].tolist(), *reply]
        for end in range(len(said) - len(reply), len(said)):
            for length in _CONTEXTS:
                if length <= end:
                    self._vote(tuple(said[end - length : end]), said[end])

    def _vote(self, context: tuple[int, ...], token: int) -> None:
        """Counts by the majority vote of Boyer and Moore: whoever has more than half of the votes stands there."""
        # One leader per context, no count per token: memory stays small, and only a majority is worth a draft.
        leader, votes = self._followed.get(context, (token, 0))
        if not votes:
            self._followed[context] = (token, 1)
        else:
            self._followed[context] = (leader, votes + (1 if token == leader else -1))

    def propose(self, batch: Batch, which: Ints) -> Ints:
        """Drafts for n of a batch's replies, within their budgets: ids (n, w); -1 behind a draft's end."""
        # The token that is drawn behind a draft counts, too.
        room = np.where(batch.alive, np.minimum(batch.budgets - batch.counts - 1, self.most), 0)
        drafts = [self._draft(batch.tail(i, _CONTEXTS[0]), room[i]) if room[i] > 0 else [] for i in which]
        found = np.full((len(drafts), max(map(len, drafts))), -1, dtype=np.int64)
        for row, draft in zip(found, drafts, strict=True):
            row[: len(draft)] = draft
        return found

    def _draft(self, said: list[int], most: int) -> list[int]:
        start = len(said)
        while len(said) < start + most:
            # The longest context that was seen before decides; a draft goes on from its own tokens.
            known = (self._followed.get(tuple(said[-length:])) for length in _CONTEXTS if length <= len(said))
            token, votes = next(filter(None, known), (0, 0))
            if not votes:
                break
            said.append(token)
        return said[start:]


@dataclass(frozen=True)
class Pass:
    """What a pass of the model gave for some rows."""

    logits: torch.Tensor
    """Behind the last token and behind every drafted one, shape (rows, 1 + w, vocabulary)."""
    drafts: Ints
    """The tokens that were drafted, shape (rows, w); -1 for none."""

    @classmethod
    def undrafted(cls, logits: torch.Tensor) -> Pass:
        """Without drafts, from logits of shape (rows, vocabulary)."""
        return cls(logits[:, None], np.zeros((len(logits), 0), dtype=np.int64))


def sample_tokens(batch: Batch, which: Ints, rows: Ints, outputs: Pass, sampling: Sampling, *, eos: Ints) -> None:
    """Draws a token for replies ``which``, by the ``rows`` of a pass, and more while they are as drafted."""
    for place in range(outputs.logits.shape[1]):
        # Speculative sampling usually accepts a draft by the ratio of two models' probabilities. Here there is nothing
        # to weigh: a draft is a guess of what this draw gives, and is right or not.
        # The number depends on the place in the reply alone, so with drafts the same token is drawn as without.
        draws = uniforms(batch.seeds[which], batch.counters[which])
        index = torch.from_numpy(rows).to(outputs.logits.device)
        tokens, logprobs = draw(outputs.logits[index, place], draws, sampling)
        batch.add(which, tokens, logprobs, eos)
        if place == outputs.drafts.shape[1]:
            return
        # The next place's logits were computed behind the drafted token: they hold for replies that drew it.
        confirmed = batch.alive[which] & (tokens == outputs.drafts[rows, place])
        which, rows = which[confirmed], rows[confirmed]
        if not len(which):
            return
