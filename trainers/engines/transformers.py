"""Generates with any causal language model of transformers, on CPU or GPU, in batches of growing conversations."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from skillc_gym.errors import ConfigError
from trainers.base import Sampling
from trainers.engines.batching import Batch, Ints, chunks_by_length, common_prefix
from trainers.engines.drafts import Drafts, Pass, sample_tokens
from trainers.engines.kv_cache import ConversationCache
from trainers.engines.types import Generation, Request
from trainers.models.segments import SEGMENTS, attend_by_segments, attention_kinds, sliding_window, text_config

_Masks = torch.Tensor | dict[str, torch.Tensor]


@dataclass
class Conversation:
    """A row of the cache: which tokens' keys and values it holds."""

    slot: int
    tokens: Ints
    last_call: int = 0


class TransformersEngine:
    """Batched sampling that keeps the keys and values of conversations between turns.

    A request whose prompt begins like what its key has cached costs only the tokens that differ; identical fresh
    prompts are computed once. Each token takes one random number determined by (request seed, turn, place in the
    reply): beyond rounding, no reply depends on its neighbours, and conversations of one seed share their draws.

    Args:
        model: A causal language model of transformers; its weights are read at every call, its mode is restored.
        eos_token_ids: Tokens that end a reply.
        max_rows: Most conversations computed at once; longer batches are cut, the least recently used are forgotten.
        prefill_tokens: Most tokens, padding included, of one forward pass over prompts.
        autocast: Runs the forward passes under autocast with this type (for weights held in float32 on a GPU).
        refresh: Called by every reset: brings weights that are trained elsewhere into the model.
        draft_tokens: Tokens drafted per row, which one pass confirms or refuses; see :mod:`trainers.engines.drafts`.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        eos_token_ids: Sequence[int],
        *,
        max_rows: int = 256,
        prefill_tokens: int = 8192,
        autocast: torch.dtype | None = None,
        refresh: Callable[[], object] | None = None,
        draft_tokens: int = 0,
    ) -> None:
        self.model, self.autocast = model, autocast
        self.max_rows, self.prefill_tokens, self.draft_tokens = max_rows, prefill_tokens, draft_tokens
        self._eos = np.array(sorted(eos_token_ids), dtype=np.int64)
        self._window, self._lists_layers = sliding_window(model), bool(attention_kinds(model))
        self._float_mask = _implementation(model) == "eager"
        if not self._float_mask:
            attend_by_segments(model)
        self._refresh = refresh or (lambda: None)
        self._forget()

    @property
    def device(self) -> torch.device:
        """Where the model's parameters live."""
        return next(self.model.parameters()).device

    def reset(self) -> None:
        """Forgets all conversations and frees their memory; takes in the present weights."""
        self._forget()
        self._refresh()

    def _forget(self) -> None:
        self._cache = ConversationCache()
        self._drafts = Drafts(self.draft_tokens)
        self._known: dict[Hashable, Conversation] = {}
        # Whose each row of the cache is; None for a free one.
        self._slots: list[Hashable | None] = []
        # Columns that have been written to in any row, and the last position that the current call may reach.
        self._calls = self._columns = self._end = 0

    def release(self, keys: Iterable[Hashable]) -> None:
        """Forgets single conversations; their rows are used again."""
        for key in keys:
            conversation = self._known.pop(key, None)
            if conversation is not None:
                self._slots[conversation.slot] = None

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Generation]:
        """Generates one reply per request, in order; a ConfigError for an empty prompt, or two of one key."""
        if len({request.key for request in requests}) < len(requests):
            raise ConfigError("Two requests of one call have the same key; give each conversation its own.")
        if any(len(request.prompt_ids) == 0 or request.max_tokens < 1 for request in requests):
            raise ConfigError("A request needs at least one prompt token and max_tokens >= 1.")
        replies: list[Generation] = []
        with self.computing():
            for start in range(0, len(requests), self.max_rows):
                replies += self._generate(requests[start : start + self.max_rows], sampling)
        return replies

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Surrounds passes of the model: no gradients, nothing is dropped out, the engine's own arithmetic."""
        cast = torch.autocast(self.device.type, self.autocast) if self.autocast is not None else nullcontext()
        with torch.inference_mode(), evaluating(self.model), cast:
            yield

    def logits_after(self, requests: Sequence[Request]) -> torch.Tensor:
        """Logits (n, vocabulary) behind prompts, which stay cached; within :meth:`computing`, up to ``max_rows``."""
        batch, members, logits = self._prompted(requests)
        self._keep_prompts(batch)
        return logits[self._tensor(rows_of(members)[np.argsort(np.concatenate(members))])]

    def _keep_prompts(self, batch: Batch) -> None:
        for key, prompt in zip(batch.keys, batch.prompts, strict=True):
            self._known[key].tokens = prompt

    def _generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Generation]:
        batch, members, logits = self._prompted(requests)
        for request in requests:
            # If the call is cut short, what its rows hold is not known.
            self._known[request.key].tokens = np.zeros(0, dtype=np.int64)
        self._decode(batch, np.concatenate(members), logits, sampling)
        for i, request in enumerate(requests):
            self._known[request.key].tokens = batch.computed(i)
        return self._replies(batch)

    def _prompted(self, requests: Sequence[Request]) -> tuple[Batch, list[Ints], torch.Tensor]:
        """Computes prompts; the numbers of the requests in each of the first rows, and the logits behind them."""
        batch = self._begun(requests)
        members = self._line_up(requests, batch)
        self._cache.reserve(len(self._slots), self._end + 2)
        return batch, members, self._prefill([batch.prompts[each[0]] for each in members])

    def _begun(self, requests: Sequence[Request]) -> Batch:
        batch = Batch(requests)
        # Padding and drafts may stand behind it, where a model with a table of positions has none.
        self._end = int((batch.lengths + batch.budgets).max()) - 1
        return batch

    def _replies(self, batch: Batch) -> list[Generation]:
        """The finished replies, from which drafts are made from now on."""
        replies = [batch.reply(i) for i in range(len(batch.keys))]
        for prompt, reply in zip(batch.prompts, replies, strict=True):
            self._drafts.learn(prompt, reply.token_ids)
        return replies

    # Rows --------------------------------------------------------------------------------------------------------

    def _line_up(self, requests: Sequence[Request], batch: Batch) -> list[Ints]:
        """The numbers of the requests in each row: here one has a row to itself."""
        return list(self._place(requests)[:, None])

    def _place(self, requests: Sequence[Request]) -> Ints:
        """Gives every request one of the first rows; returns the number of the request in each row."""
        self._calls += 1
        wanted = {request.key: i for i, request in enumerate(requests)}
        idle = sorted((c.last_call, c.slot) for key, c in self._known.items() if key not in wanted)
        fresh = [key for key in wanted if key not in self._known]
        # Conversations that this call does not continue give way, the least recently used first.
        surplus = max(0, len(self._known) + len(fresh) - self.max_rows)
        self.release([self._slots[slot] for _, slot in idle[:surplus]])
        for key, slot in zip(fresh, self._free_slots(len(fresh)), strict=False):
            self._slots[slot] = key
            self._known[key] = Conversation(slot, np.zeros(0, dtype=np.int64))
        for key in wanted:
            self._known[key].last_call = self._calls
        # The rows of a call are the first ones, so a pass takes a slice of the cache and copies nothing.
        self._to_front(list(wanted))
        return np.array([wanted[self._slots[slot]] for slot in range(len(requests))])

    def _free_slots(self, wanted: int, start: int = 0) -> list[int]:
        """Rows from a first one on that are nobody's; new ones are added where they are too few."""
        free = [slot for slot in range(start, len(self._slots)) if self._slots[slot] is None]
        have, missing = len(self._slots), max(0, wanted - len(free))
        self._slots += [None] * missing
        return [*free, *range(have, have + missing)]

    def _to_front(self, keys: Sequence[Hashable]) -> None:
        """Swaps rows of the cache, as few as possible, until the given conversations are the first rows."""
        inside = set(keys)
        holes = [slot for slot in range(len(keys)) if self._slots[slot] not in inside]
        behind = [self._known[key].slot for key in keys if self._known[key].slot >= len(keys)]
        for hole, slot in zip(holes, behind, strict=True):
            self._slots[hole], self._slots[slot] = self._slots[slot], self._slots[hole]
            for moved in (hole, slot):
                key = self._slots[moved]
                if key is not None:
                    self._known[key].slot = moved
        self._copy(list(zip(behind + holes, holes + behind, strict=True)), self._columns)

    def _copy(self, pairs: Sequence[tuple[int, int]], columns: int) -> None:
        """Copies the first columns of rows over those of others, all at once."""
        if pairs:
            self._cache.reserve(len(self._slots), columns)
            source, target = np.array(pairs).T
            self._cache.copy_rows(self._tensor(source), self._tensor(target), columns)

    # Prompts -----------------------------------------------------------------------------------------------------

    def _prefill(self, prompts: Sequence[Ints]) -> torch.Tensor:
        """Runs what is new of each row's prompt; returns the logits after its last token, shape (n, vocabulary)."""
        cached = np.array([common_prefix(self._known[self._slots[r]].tokens, p) for r, p in enumerate(prompts)])
        new = np.array([len(prompt) for prompt in prompts]) - cached
        first: dict[bytes, int] = {}
        # Fresh prompts that are equal, as a group's are, are computed once; their other rows get copies. A row that has
        # a beginning cached is computed by itself: what is new of it looks at keys of its own.
        original = [
            row if cached[row] else first.setdefault(prompt.tobytes(), row) for row, prompt in enumerate(prompts)
        ]
        todo = [row for row, source in enumerate(original) if row == source]
        twins = [row for row, source in enumerate(original) if row != source]
        logits: torch.Tensor | None = None
        for chunk in chunks_by_length(todo, new, self.prefill_tokens, self.device):
            part = self._prefill_chunk(np.array(chunk), prompts, cached, new)
            logits = part.new_empty(len(prompts), part.shape[1]) if logits is None else logits
            logits[self._tensor(np.array(chunk))] = part
        assert logits is not None
        if twins:
            source, target = self._tensor(np.array([original[row] for row in twins])), self._tensor(np.array(twins))
            self._cache.copy_rows(source, target, int(new[twins].max()))
            logits[target] = logits[source]
        return logits

    def _prefill_chunk(self, chunk: Ints, prompts: Sequence[Ints], cached: Ints, new: Ints) -> torch.Tensor:
        width = int(new[chunk].max())
        ids = np.zeros((len(chunk), width), dtype=np.int64)
        for i, row in enumerate(chunk):
            ids[i, width - new[row] :] = prompts[row][cached[row] :]
        # Padding stands on the left and writes behind the row's last token, where nothing is read before it is
        # overwritten; so the logits wanted are always those of the last column.
        offsets = np.arange(width)[None, :] - (width - new[chunk])[:, None]
        positions = np.where(offsets < 0, offsets + width, offsets) + cached[chunk][:, None]
        self._cache.reserve(len(self._slots), int(positions.max()) + 1)
        whole = len(chunk) == chunk[-1] - chunk[0] + 1
        rows = slice(int(chunk[0]), int(chunk[-1]) + 1) if whole else self._tensor(chunk)
        return self._forward(rows, self._tensor(chunk), ids, positions)[:, -1]

    # Tokens ------------------------------------------------------------------------------------------------------

    def _decode(self, batch: Batch, order: Ints, logits: torch.Tensor, sampling: Sampling) -> None:
        """Draws tokens until every reply has ended; ``order``: each row's request, ``logits``: behind its prompt."""
        outputs = Pass.undrafted(logits)
        while True:
            sample_tokens(batch, order, np.arange(len(order)), outputs, sampling, eos=self._eos)
            alive = batch.alive[order]
            if not alive.any():
                return
            # Moving rows costs a copy, computing ended ones costs a share of each pass: moved once a quarter has ended.
            if alive.sum() <= 0.75 * len(order):
                self._to_front([batch.keys[i] for i in order[alive]])
                numbers = {batch.keys[i]: i for i in order[alive]}
                order = np.array([numbers[key] for key in self._slots[: len(numbers)]])
            outputs = self._pass(batch, order)

    def _pass(self, batch: Batch, which: Ints) -> Pass:
        """Runs the newest token of replies, one in each of the first rows, and a draft of what follows."""
        drafts = self._drafts.propose(batch, which)
        ids = np.concatenate([batch.last[which][:, None], np.maximum(drafts, 0)], axis=1)
        # The newest token has been drawn and not been computed: it stands one before the next one's position. Rows that
        # have ended but are still carried along write behind their last token.
        first = batch.positions[which] - batch.alive[which]
        positions = np.minimum(first[:, None] + np.arange(ids.shape[1]), self._end + 1)
        index = torch.arange(len(which), device=self.device)
        return Pass(self._forward(slice(0, len(which)), index, ids, positions, keep=ids.shape[1]), drafts)

    def _forward(
        self, rows: slice | torch.Tensor, index: torch.Tensor, ids: Ints, positions: Ints, keep: int = 1
    ) -> torch.Tensor:
        """One pass over ids and positions of shape (n, q); returns the last logits, shape (n, keep, vocabulary)."""
        columns = int(positions.max()) + 1
        self._columns = max(self._columns, columns)
        where = self._tensor(positions)
        self._cache.aim(rows, index[:, None], where, columns)
        # Token p lies in column p: causal means columns up to the position, whatever rubbish lies behind it.
        seen = torch.arange(columns, device=self.device)
        mask = self._layered((seen <= where[:, :, None])[:, None], where, seen)
        # A number keeps a view, of which a processor's output layer copies all its weights row by row.
        last = torch.arange(ids.shape[1] - keep, ids.shape[1], device=self.device)
        # Padding may stand behind the last position that the model has an embedding for.
        return self._run(ids, where.clamp(max=self._end), mask, logits_to_keep=last)[:, -keep:]

    def _run(self, ids: Ints, positions: torch.Tensor, mask: _Masks, **options: Any) -> torch.Tensor:
        logits: torch.Tensor = self.model(
            input_ids=self._tensor(ids),
            position_ids=positions,
            attention_mask=mask,
            past_key_values=self._cache,
            use_cache=True,
            **options,
        ).logits
        return logits.float()

    def _layered(self, seen: torch.Tensor, positions: torch.Tensor, of_columns: torch.Tensor) -> _Masks:
        """What each kind of layer sees, by the ``positions`` (n, q) of queries and those of the columns."""
        if self._window is None:
            return self._typed(seen)
        near = seen & (of_columns > positions[:, :, None] - self._window)[:, None]
        if not self._lists_layers:
            return self._typed(near)
        return {"full_attention": self._typed(seen), "sliding_attention": self._typed(near)}

    def _typed(self, mask: torch.Tensor) -> torch.Tensor:
        if not self._float_mask:
            return mask
        dtype = next(self.model.parameters()).dtype
        return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(~mask, torch.finfo(dtype).min)

    def _tensor(self, array: npt.NDArray[Any]) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)


def rows_of(members: Sequence[Ints]) -> Ints:
    """The row of each request, row by row."""
    return np.repeat(np.arange(len(members)), [len(each) for each in members])


def _implementation(model: torch.nn.Module) -> str:
    """Which attention the model runs; a ConfigError for flash attention and its kin, which take no mask."""
    name = getattr(text_config(model), "_attn_implementation", "sdpa") or "sdpa"
    if name not in ("sdpa", "eager", SEGMENTS):
        raise ConfigError(
            f"engine=transformers needs a mask for every row, which {name} does not take; set attention=sdpa, or "
            "generate with engine=vllm."
        )
    return str(name)


@contextmanager
def evaluating(model: torch.nn.Module) -> Iterator[None]:
    """Turns a model to evaluation, in which nothing is dropped out, and back to what it was."""
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True
