"""Book-keeping of one batch of replies, and the pure steps of generation: grouping prompts and drawing tokens."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import torch

from skillc_gym.errors import ConfigError
from trainers.base import Sampling
from trainers.engines.types import Generation, Request

Ints = npt.NDArray[np.int64]
_WASTE_ON_CPU, _WASTE_ELSEWHERE = 48, 1024
"""Most tokens of padding in a group of prompts: more would cost more than another pass does."""


class Batch:
    """The replies of one call, empty at first, in the order of its requests (n of them, at most T tokens each)."""

    def __init__(self, requests: Sequence[Request]) -> None:
        self.keys = [request.key for request in requests]
        self.prompts = [np.asarray(request.prompt_ids, dtype=np.int64) for request in requests]
        self.seeds = np.array([request.seed % 2**64 for request in requests], dtype=np.uint64)
        self.streams = np.array([request.stream for request in requests], dtype=np.uint64)
        self.lengths: Ints = np.array([len(prompt) for prompt in self.prompts])
        self.budgets: Ints = np.array([request.max_tokens for request in requests])
        shape = (len(requests), int(self.budgets.max()))
        self.tokens, self.logprobs = np.zeros(shape, dtype=np.int64), np.zeros(shape)
        self.counts, self.alive = np.zeros(len(requests), dtype=np.int64), np.ones(len(requests), dtype=bool)

    @property
    def positions(self) -> Ints:
        """Position of each reply's next token, shape (n,)."""
        return self.lengths + self.counts

    @property
    def counters(self) -> npt.NDArray[np.uint64]:
        """Which random number each reply's next token takes: by turn and place in the reply, shape (n,)."""
        # No reply has 2**32 tokens, so no two turns share a number.
        return (self.streams << np.uint64(32)) + self.counts.astype(np.uint64)

    @property
    def last(self) -> Ints:
        """Each reply's newest token, shape (n,)."""
        return self.tokens[np.arange(len(self.keys)), self.counts - 1]

    def add(self, which: Ints, tokens: Ints, logprobs: npt.NDArray[np.float64], eos: Ints) -> None:
        """Appends one token to those of the given replies that have not ended, and ends what ends with it."""
        going = self.alive[which]
        replies = which[going]
        self.tokens[replies, self.counts[replies]] = tokens[going]
        self.logprobs[replies, self.counts[replies]] = logprobs[going]
        self.counts[replies] += 1
        self.alive[replies] = ~np.isin(tokens[going], eos) & (self.counts[replies] < self.budgets[replies])

    def reply(self, i: int) -> Generation:
        """The finished reply to request i."""
        count = self.counts[i]
        return Generation(self.tokens[i, :count].tolist(), self.logprobs[i, :count].tolist())

    def tail(self, i: int, count: int) -> list[int]:
        """The last tokens of request i and of its reply so far."""
        said = self.tokens[i, : self.counts[i]].tolist()
        return [*self.prompts[i][-count:].tolist(), *said][-count:]

    def computed(self, i: int) -> Ints:
        """The tokens of request i that have gone through the model: all but the last one drawn."""
        return np.concatenate([self.prompts[i], self.tokens[i, : self.counts[i] - 1]])


def common_prefix(cached: Ints, prompt: Ints) -> int:
    """Counts the tokens of a prompt that need not be computed again."""
    # At least one always is: without a query there are no logits to draw from.
    return alike(cached, prompt[:-1])


def alike(first: Ints, second: Ints) -> int:
    """Counts the tokens that both begin with."""
    most = min(len(first), len(second))
    differing = np.flatnonzero(first[:most] != second[:most])
    return int(differing[0]) if len(differing) else most


def chunks_by_length(rows: Iterable[int], lengths: Ints, most_tokens: int, device: torch.device) -> list[list[int]]:
    """Groups rows of similar length; ``most_tokens`` bounds rows times longest row, of a group of several rows."""
    waste = _WASTE_ON_CPU if device.type == "cpu" else _WASTE_ELSEWHERE
    chunks: list[list[int]] = []
    total = 0
    for row in sorted(rows, key=lambda row: (lengths[row], row)):
        padded = (len(chunks[-1]) + 1) * lengths[row] if chunks else 0
        if not chunks or padded > most_tokens or padded - total - lengths[row] > waste:
            # A group ends where one more row would make it too large, or would waste too much on padding.
            chunks.append([])
            total = 0
        chunks[-1].append(row)
        total += lengths[row]
    return [sorted(chunk) for chunk in chunks]


def draw(
    logits: torch.Tensor, draws: npt.NDArray[np.float64], sampling: Sampling
) -> tuple[Ints, npt.NDArray[np.float64]]:
    """Draws a token per row by inverting the cumulative distribution.

    From float32 logits (n, vocabulary) and uniform numbers in [0, 1), (n,): token ids and their log-probabilities under
    the temperature, (n,) each. A ConfigError for logits that are no numbers, of which the last token would be drawn.
    """
    # Of the tempered distribution over all tokens, cut or not: so the trainer computes them too.
    logprobs = torch.log_softmax(logits / sampling.temperature, dim=-1)
    if sampling.greedy:
        tokens = logprobs.argmax(dim=-1, keepdim=True)
    else:
        # In float64: over a vocabulary of 150,000 a float32 sum is off by more than rare tokens weigh.
        probabilities = logprobs.exp().double()
        if sampling.truncates:
            probabilities = probabilities.masked_fill(~likely_tokens(logprobs, sampling), 0.0)
        cumulative = probabilities.cumsum(dim=-1)
        # The sum is not quite 1, and less where the tail was cut: the draw is scaled to what there is.
        target = torch.from_numpy(draws).to(logits.device)[:, None] * cumulative[:, -1:]
        tokens = torch.searchsorted(cumulative, target, right=True).clamp_(max=logits.shape[-1] - 1)
    chosen = logprobs.gather(-1, tokens)[:, 0].double().cpu().numpy()
    if np.isnan(chosen).any():
        raise ConfigError("The model's logits are NaN: its weights are damaged, or its training diverged.")
    return tokens[:, 0].cpu().numpy(), chosen


def likely_tokens(logprobs: torch.Tensor, sampling: Sampling) -> torch.Tensor:
    """Which tokens may be drawn, bool in the shape of ``logprobs`` (n, vocabulary); the most probable one always may.

    First the ``top_k``, then those at least ``min_p`` times as probable as the most probable, then of these the most
    probable that together reach ``top_p``.
    """
    kept = torch.ones_like(logprobs, dtype=torch.bool)
    if sampling.top_k:
        least = logprobs.topk(min(sampling.top_k, logprobs.shape[-1]), dim=-1).values[:, -1:]
        kept &= logprobs >= least
    if sampling.min_p:
        kept &= logprobs >= logprobs.max(dim=-1, keepdim=True).values + math.log(sampling.min_p)
    if sampling.top_p < 1:
        left = logprobs.masked_fill(~kept, -math.inf).softmax(dim=-1)
        ordered, places = left.sort(dim=-1, descending=True, stable=True)
        # A token is in while what stands before it has not reached the share.
        inside = ordered.cumsum(dim=-1) - ordered < sampling.top_p
        kept &= torch.zeros_like(inside).scatter(-1, places, inside)
    return kept
