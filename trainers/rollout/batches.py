"""From training rows to forward passes: which rows go together, and their tensors."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from trainers.advantages import FloatArray
from trainers.base import TokenRow
from trainers.engines.batching import common_prefix
from trainers.rollout.training_rows import TrainingRow, padding_row

if TYPE_CHECKING:
    import torch

_Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Tokens:
    """Rows of tokens, padded on the right.

    No attention mask is needed: under causal attention nothing looks at padding on the right.

    Attributes:
        input_ids: int64 (rows, length).
        mask: 1 for the model's own tokens, for the last ``tokens`` columns of the ids; float32 (rows, tokens).
    """

    input_ids: torch.Tensor
    mask: torch.Tensor

    def place(self, values: torch.Tensor | Sequence[FloatArray]) -> torch.Tensor:
        """Puts one value per own token, row by row, into (rows, tokens); 0 elsewhere."""
        import torch

        if not isinstance(values, torch.Tensor):
            values = torch.as_tensor(np.concatenate(values), dtype=self.mask.dtype, device=self.mask.device)
        return values.new_zeros(self.mask.shape).masked_scatter(self.mask > 0, values)

    def take(self, figures: torch.Tensor) -> torch.Tensor:
        """The opposite of :meth:`place`: the own tokens' figures, row by row."""
        return figures[self.mask > 0]


@dataclass(frozen=True)
class MicroBatch:
    """One forward and backward pass.

    Attributes:
        tokens: The rows' tokens.
        advantages: Per own token, 0 elsewhere; float32 (rows, tokens).
        weights: Weight of every token in each loss, by the loss's name: 0 for what is not the model's own, and for rows
            on which the loss does not act; float32 (rows, tokens).
        figures: Per own token, by name: ``sampling_logprobs``, the rows' targets, and what the learner computes before
            the update, such as ``old_logprobs``; float32 (rows, tokens).
        rows: The rows themselves.
    """

    tokens: Tokens
    advantages: torch.Tensor
    weights: Mapping[str, torch.Tensor]
    figures: Mapping[str, torch.Tensor]
    rows: Sequence[TrainingRow] = field(default=())


def collate_tokens(rows: Sequence[TokenRow], pad_id: int, device: torch.device) -> Tokens:
    """Stacks rows of tokens."""
    import torch

    length, first = max(row.length for row in rows), min(len(row.prompt_ids) for row in rows)
    ids = np.full((len(rows), length), pad_id, dtype=np.int64)
    mask = np.zeros((len(rows), length - first), dtype=np.float32)
    for i, row in enumerate(rows):
        ids[i, : row.length] = row.prompt_ids + row.completion_ids
        mask[i, len(row.prompt_ids) - first : row.length - first] = row.loss_mask
    return Tokens(torch.from_numpy(ids).to(device), torch.from_numpy(mask).to(device))


def collate(
    rows: Sequence[TrainingRow],
    pad_id: int,
    device: torch.device,
    losses: Sequence[str] = (),
    targets: Collection[str] = (),
) -> MicroBatch:
    """Stacks training rows.

    Args:
        rows: At least one.
        pad_id: Token that fills up.
        device: Where the tensors go.
        losses: Names of the recipe's losses.
        targets: Names of targets that are there whether the rows have them or not, 0 where they do not.
    """
    import torch

    def weights(loss: str) -> torch.Tensor:
        of_rows = torch.tensor([training.weights.get(loss, 0.0) for training in rows], dtype=torch.float32)
        return of_rows.to(device)[:, None] * tokens.mask

    tokens = collate_tokens([training.row for training in rows], pad_id, device)
    names = sorted({*targets, *(name for training in rows for name in training.targets)})
    figures = {name: tokens.place([training.figure(name) for training in rows]) for name in names}
    drawn = tokens.place([np.asarray(training.row.own_logprobs, dtype=np.float64) for training in rows])
    return MicroBatch(
        tokens=tokens,
        advantages=tokens.place([training.advantages for training in rows]),
        weights={loss: weights(loss) for loss in losses},
        figures={"sampling_logprobs": drawn, **figures},
        rows=tuple(rows),
    )


def forward_passes(rows: Sequence[TrainingRow], count: int) -> list[list[TrainingRow]]:
    """Splits rows into a fixed number of forward passes, similar lengths together and about as many tokens in each.

    A pass without rows gets one of padding, so that all processes take part in every pass.
    """
    ordered = sorted(rows, key=lambda training: (training.row.length, training.trajectory))
    ends = np.cumsum([training.row.length for training in ordered])
    total = ends[-1] if len(ends) else 0
    passes: list[list[TrainingRow]] = [[] for _ in range(count)]
    for training, end in zip(ordered, ends, strict=True):
        middle = end - training.row.length / 2
        passes[min(count - 1, int(middle * count / total))].append(training)
    return [found or [padding_row()] for found in passes]


def shared_passes(rows: Sequence[TrainingRow], count: int) -> list[list[TrainingRow]]:
    """Splits rows into a fixed number of forward passes; what neighbours begin alike with counts once.

    Rows are put in the order of their tokens. Passes of equal size would end at multiples of a count-th of the whole;
    each ends at most half a pass from there, where neighbours share least. One without rows gets one of padding.
    """
    ordered = sorted(rows, key=lambda training: (_tokens(training), training.trajectory))
    tokens = [np.array(_tokens(training), dtype=np.int64) for training in ordered]
    alike = np.array([0, *(common_prefix(a, b) for a, b in pairwise(tokens))])
    # A row costs what it does not share with the one before it, as in a tree of their tokens.
    ends = np.cumsum([len(ids) - same for ids, same in zip(tokens, alike, strict=False)])
    cuts = np.maximum.accumulate([0, *(_cut(ends, alike, k, count) for k in range(1, count)), len(ordered)])
    return [ordered[a:b] or [padding_row()] for a, b in pairwise(cuts)]


def _cut(ends: _Ints, alike: _Ints, number: int, count: int) -> int:
    """How many rows stand before a cut: of those near its place, where the next row is least like the one before."""
    if len(ends) < 2:
        return 0
    total, before = int(ends[-1]), ends[:-1]
    distance = np.abs(before * count - number * total)
    near = np.flatnonzero(2 * distance <= total)
    if not len(near):
        return int(distance.argmin()) + 1
    return int(min(near, key=lambda i: (alike[i + 1], distance[i]))) + 1


def _tokens(training: TrainingRow) -> list[int]:
    return training.row.prompt_ids + training.row.completion_ids
