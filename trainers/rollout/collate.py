"""From training rows to the tensors of a micro-batch."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trainers.advantages import FloatArray
from trainers.base import TokenRow
from trainers.rollout.training_rows import TrainingRow

if TYPE_CHECKING:
    import torch

__all__ = ["MicroBatch", "Tokens", "collate", "collate_tokens"]


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


@dataclass(frozen=True)
class MicroBatch:
    """One forward and backward pass.

    Attributes:
        tokens: The rows' tokens.
        advantages: Per own token, 0 elsewhere; float32 (rows, tokens).
        row_weights: Weight of each own token of a row, 0 for padding; float32 (rows,).
        figures: Per own token, by name: ``sampling_logprobs``, the rows' targets, and what the learner computes before
            the update, such as ``old_logprobs``; float32 (rows, tokens).
        factors: By how much each loss acts on each row; float32 (rows,).
        rows: The rows themselves.
    """

    tokens: Tokens
    advantages: torch.Tensor
    row_weights: torch.Tensor
    figures: Mapping[str, torch.Tensor]
    factors: Mapping[str, torch.Tensor] = field(default_factory=dict)
    rows: Sequence[TrainingRow] = ()


def collate_tokens(rows: Sequence[TokenRow], pad_id: int, device: torch.device) -> Tokens:
    """Stacks rows of tokens."""
    import torch

    length, keep = _shape(rows)
    ids = np.full((len(rows), length), pad_id, dtype=np.int64)
    for i, row in enumerate(rows):
        ids[i, : row.length] = row.prompt_ids + row.completion_ids
    mask = _spread(rows, [np.ones(row.model_tokens) for row in rows], keep)
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

    def tensor(array: NDArray[Any]) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32)).to(device)

    own = [training.row for training in rows]
    _, keep = _shape(own)
    names = sorted({*targets, *(name for training in rows for name in training.targets)})
    figures = {"sampling_logprobs": [_sampling_logprobs(row) for row in own]}
    for name in names:
        figures[name] = [training.targets.get(name, np.zeros(training.row.model_tokens)) for training in rows]
    return MicroBatch(
        tokens=collate_tokens(own, pad_id, device),
        advantages=tensor(_spread(own, [training.advantages for training in rows], keep)),
        row_weights=tensor(np.array([training.weight for training in rows])),
        figures={name: tensor(_spread(own, values, keep)) for name, values in figures.items()},
        factors={name: tensor(np.array([training.losses.get(name, 0.0) for training in rows])) for name in losses},
        rows=tuple(rows),
    )


def _shape(rows: Sequence[TokenRow]) -> tuple[int, int]:
    """Columns in all, and the last ones that hold completions."""
    length = max(row.length for row in rows)
    return length, length - min(len(row.prompt_ids) for row in rows)


def _spread(rows: Sequence[TokenRow], values: Sequence[FloatArray], keep: int) -> NDArray[np.float32]:
    """Puts one value per own token at the own tokens' places; float32 (rows, keep)."""
    length = max(row.length for row in rows)
    spread = np.zeros((len(rows), length), dtype=np.float32)
    for i, (row, own) in enumerate(zip(rows, values, strict=True)):
        start = len(row.prompt_ids)
        spread[i, start : row.length][np.asarray(row.loss_mask, dtype=bool)] = own
    return np.ascontiguousarray(spread[:, length - keep :])


def _sampling_logprobs(row: TokenRow) -> FloatArray:
    return np.asarray([value for value, own in zip(row.logprobs, row.loss_mask, strict=True) if own], dtype=np.float64)
