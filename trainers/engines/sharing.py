"""Generates like :mod:`trainers.engines.transformers`, and computes conversations that have gone alike so far once.

Rollouts of one task begin with one prompt and see the same as long as they do the same. Here such conversations lie in
one row of the cache, their line, and part when they draw different tokens. Each still draws with random numbers of its
own, so replies are those of the engine without sharing, up to rounding. A line is to the engine below what a
conversation is there: it has a key, a row, and tokens whose keys and values lie in it.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import replace
from itertools import count

import numpy as np
import torch

from trainers.base import Sampling
from trainers.engines.batching import Batch, Ints, alike, common_prefix
from trainers.engines.drafts import Pass, sample_tokens
from trainers.engines.transformers import Conversation, TransformersEngine, rows_of
from trainers.engines.types import Generation, Request

_NOTHING: Ints = np.zeros(0, dtype=np.int64)


class SharingEngine(TransformersEngine):
    """Keeps one row of the cache per line of conversations that have gone alike; see the module."""

    def _forget(self) -> None:
        super()._forget()
        self._numbers = count()
        # Which line a conversation goes on in, and its own tokens that the line holds for sure.
        self._line_of: dict[Hashable, int] = {}
        self._said: dict[Hashable, Ints] = {}

    def release(self, keys: Iterable[Hashable]) -> None:
        """Forgets single conversations; a line that was the last one's is used again."""
        left = {self._line_of.pop(key) for key in keys if self._said.pop(key, None) is not None}
        super().release(left - set(self._line_of.values()))

    def _generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Generation]:
        batch, members, logits = self._prompted(requests)
        last_of = self._decode_lines(batch, members, logits, sampling)
        for i, request in enumerate(requests):
            self._said[request.key] = self._kept(batch, i, last_of.get(self._line_of[request.key], i))
        return self._replies(batch)

    def _keep_prompts(self, batch: Batch) -> None:
        self._said.update(zip(batch.keys, batch.prompts, strict=True))

    @staticmethod
    def _kept(batch: Batch, i: int, last: int) -> Ints:
        """What a line still holds of what a request said."""
        # Its row holds what the last request that went on in it has computed, and nothing else for sure: where another
        # ended inside a draft that this one refused, the row has been overwritten from there.
        own = batch.computed(i)
        return own[: alike(own, batch.computed(last))]

    # Lines -------------------------------------------------------------------------------------------------------

    def _line_up(self, requests: Sequence[Request], batch: Batch) -> list[Ints]:
        """Gives requests with equal prompts one of the first rows; returns the numbers of the requests in each row."""
        together: dict[bytes, list[int]] = {}
        for i, prompt in enumerate(batch.prompts):
            together.setdefault(prompt.tobytes(), []).append(i)
        taken: dict[int, list[int]] = {}
        sources: dict[int, tuple[int, Ints]] = {}
        # Equal prompts are one line, whichever conversations they continue: what they had said apart is in the prompt.
        # Beginnings are looked up before anything is moved: a line may be one prompt's row and another one's source.
        for numbers in together.values():
            line, source, begun = self._beginning([batch.keys[i] for i in numbers], batch.prompts[numbers[0]], taken)
            taken[line], sources[line] = numbers, (source, begun)
        self._make_room(taken, len(requests))
        lines = list(taken)
        order = self._place([replace(requests[taken[line][0]], key=line) for line in lines])
        self._begin(sources)
        for line, numbers in taken.items():
            self._line_of.update((batch.keys[i], line) for i in numbers)
            self._said.update((batch.keys[i], _NOTHING) for i in numbers)
        super().release(set(self._known) - set(self._line_of.values()))
        return [np.array(taken[lines[i]]) for i in order]

    def _beginning(self, keys: Sequence[Hashable], prompt: Ints, taken: Collection[int]) -> tuple[int, int, Ints]:
        """Where a prompt's conversations go on: the line, the line that holds its beginning, and that beginning."""
        begun = {key: common_prefix(self._said[key], prompt) for key in keys if self._line_of.get(key) in self._known}
        best = max(begun, key=begun.__getitem__, default=None)
        if best is None or not begun[best]:
            line = next(self._numbers)
            return line, line, _NOTHING
        source = self._line_of[best]
        # A row may be written on only if nobody else needs what lies in it behind the beginning; else it is copied.
        others = (key for key, line in self._line_of.items() if line == source and key not in begun)
        free = source not in taken and all(len(self._said[key]) <= begun[best] for key in others)
        return source if free else next(self._numbers), source, prompt[: begun[best]]

    def _make_room(self, taken: Collection[int], wanted: int) -> None:
        """Forgets the lines used least recently, so that every conversation may come to have a row of its own."""
        idle = sorted((each.last_call, line) for line, each in self._known.items() if line not in taken)
        surplus = max(0, len(idle) + wanted - self.max_rows)
        super().release([line for _, line in idle[:surplus]])

    def _begin(self, sources: dict[int, tuple[int, Ints]]) -> None:
        """Copies the beginnings that lie in other lines, and notes what each line holds."""
        copies = []
        for line, (source, begun) in sources.items():
            known = source in self._known
            self._known[line].tokens = begun if known else _NOTHING
            if known and source != line:
                copies.append((self._known[source].slot, self._known[line].slot))
        self._copy(copies, max(len(begun) for _, begun in sources.values()))

    # Tokens ------------------------------------------------------------------------------------------------------

    def _decode_lines(
        self, batch: Batch, members: Sequence[Ints], logits: torch.Tensor, sampling: Sampling
    ) -> dict[int, int]:
        """Draws tokens until every reply has ended; returns the last request that went on in each line.

        ``members`` are the numbers of the requests in each row, ``logits`` stand after the last token of each row's
        prompt, shape (rows, vocabulary).
        """
        last_of: dict[int, int] = {}
        order, row_of = np.concatenate(members), rows_of(members)
        outputs = Pass.undrafted(logits)
        while True:
            sample_tokens(batch, order, row_of, outputs, sampling, eos=self._eos)
            if not batch.alive[order].any():
                return last_of
            # Whoever drew another token than its row's first needs keys and values of its own from here on. The pass
            # then computes one request of each row: the others of the row have said the very same.
            order, row_of = self._compact(batch, order, row_of)
            row_of = self._part(batch, order, row_of)
            leaders = _leaders(batch, order, row_of)
            last_of.update((self._line_of[batch.keys[i]], int(i)) for i in leaders[batch.alive[leaders]])
            outputs = self._pass(batch, leaders)

    def _compact(self, batch: Batch, order: Ints, row_of: Ints) -> tuple[Ints, Ints]:
        """Leaves out the requests that have ended, once a quarter of the rows has."""
        alive = batch.alive[order]
        living = np.unique(row_of[alive])
        if len(living) > 0.75 * (row_of.max() + 1):
            return order, row_of
        self._to_front([self._slots[row] for row in living])
        # The lines that go on are the first rows now, but not in the order of before: each knows its row.
        order = order[alive]
        return order, np.array([self._known[self._line_of[batch.keys[i]]].slot for i in order])

    def _part(self, batch: Batch, order: Ints, row_of: Ints) -> Ints:
        """Gives requests that drew other tokens than the first of their row's rows of their own; returns all rows.

        All but the newest token of a request are those that were drafted for its row, so requests of one row have gone
        alike if their number of tokens and the newest one are alike.
        """
        together: dict[tuple[int, int, int], list[int]] = {}
        newest, counts = batch.last[order], batch.counts[order]
        for place in np.flatnonzero(batch.alive[order]).tolist():
            together.setdefault((int(row_of[place]), int(counts[place]), int(newest[place])), []).append(place)
        # The first of a row's different continuations keeps the row; each of the others gets a copy.
        staying: set[int] = set()
        leaving: list[tuple[int, list[int]]] = []
        for (row, *_), places in together.items():
            if row in staying:
                leaving.append((row, places))
            staying.add(row)
        moved, first = row_of.copy(), int(row_of.max()) + 1
        lines = self._new_rows(first, [row for row, _ in leaving], int(batch.positions[order].max()))
        for number, (_, places) in enumerate(leaving):
            moved[places] = first + number
            self._line_of.update((batch.keys[order[place]], lines[number]) for place in places)
        return moved

    def _new_rows(self, first: int, sources: Sequence[int], columns: int) -> list[int]:
        """Copies rows' first columns behind the first rows, moving whatever lies there; returns the new lines."""
        targets = range(first, first + len(sources))
        self._slots += [None] * (targets.stop - len(self._slots))
        displaced = [slot for slot in targets if self._slots[slot] is not None]
        # New rows follow the first ones directly, so that a pass can take a slice: whatever lies there moves away.
        moves = list(zip(displaced, self._free_slots(len(displaced), targets.stop), strict=False))
        for slot, place in moves:
            self._slots[place] = self._slots[slot]
            self._known[self._slots[place]].slot = place
        self._copy(moves, self._columns)
        self._copy(list(zip(sources, targets, strict=True)), columns)
        lines = [next(self._numbers) for _ in targets]
        for slot, line in zip(targets, lines, strict=True):
            self._slots[slot] = line
            self._known[line] = Conversation(slot, _NOTHING, self._calls)
        return lines


def _leaders(batch: Batch, order: Ints, row_of: Ints) -> Ints:
    """One request of each row: one that goes on, or of those that have ended the longest."""
    # Sorted by row, then by whether it goes on, then by length: the last of each row speaks for it.
    ranked = np.lexsort((batch.positions[order], batch.alive[order], row_of))
    last = np.flatnonzero(np.diff(row_of[ranked], append=-1))
    leaders: Ints = order[ranked[last]]
    return leaders
