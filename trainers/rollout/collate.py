"""From an update's rollouts to the tensors of its micro-batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from trainers.rollout.rows import TokenRow

if TYPE_CHECKING:
    import torch

__all__ = ["Aggregation", "WeightedRow", "collate", "micro_batches", "minibatches", "weigh"]

Aggregation = Literal["trajectory", "token"]


@dataclass(frozen=True)
class WeightedRow:
    """A row with its trajectory's advantage and its share of the objective."""

    row: TokenRow
    advantage: float
    weight: float
    """Factor of every own token of the row; 0 for padding."""
    trajectory: int
    """Number of the rollout in the update."""


def minibatches(rollouts: int, count: int, seed: int) -> Iterator[list[int]]:
    """Deals an update's rollouts to its optimiser steps, at random if there are several.

    Args:
        rollouts: Number of rollouts.
        count: Number of optimiser steps.
        seed: Seed of the order.

    Yields:
        The rollouts of each optimiser step; sizes differ by at most one.
    """
    order = np.arange(rollouts) if count == 1 else np.random.default_rng(seed).permutation(rollouts)
    yield from ([int(i) for i in part] for part in np.array_split(order, count))


def weigh(
    rows_of: Sequence[Sequence[TokenRow]],
    advantages: Sequence[float],
    which: Sequence[int],
    aggregation: Aggregation,
    *,
    trajectories: int,
    tokens: int,
) -> list[WeightedRow]:
    """Gives each row the weight of its tokens in the objective.

    Args:
        rows_of: Rows of every rollout of the update.
        advantages: One per rollout.
        which: The rollouts of this optimiser step.
        aggregation: "trajectory": each counts ``1/T_i``, T_i its own tokens over all its rows; "token": all tokens
            of the step count alike.
        trajectories: Rollouts of this optimiser step over all processes.
        tokens: Own tokens of this optimiser step over all processes.
    """
    weighted = []
    for i in which:
        own = sum(row.model_tokens for row in rows_of[i])
        share = 1.0 / (trajectories * own) if aggregation == "trajectory" and own else 1.0 / max(tokens, 1)
        weighted += [WeightedRow(row, float(advantages[i]), share, i) for row in rows_of[i]]
    return weighted


def micro_batches(rows: Sequence[WeightedRow], count: int) -> list[list[WeightedRow]]:
    """Deals rows to a fixed number of forward passes, similar lengths together and about as many tokens in each.

    A pass without rows gets one of padding, so that all processes take part in every pass.
    """
    ordered = sorted(rows, key=lambda weighted: (weighted.row.length, weighted.trajectory))
    ends = np.cumsum([weighted.row.length for weighted in ordered])
    total = ends[-1] if len(ends) else 0
    batches: list[list[WeightedRow]] = [[] for _ in range(count)]
    for weighted, end in zip(ordered, ends, strict=True):
        middle = end - weighted.row.length / 2
        batches[min(count - 1, int(middle * count / total))].append(weighted)
    padding = WeightedRow(TokenRow([0], [0], [1], [0.0]), 0.0, 0.0, -1)
    return [batch or [padding] for batch in batches]


def collate(rows: Sequence[WeightedRow], pad_id: int, device: torch.device) -> dict[str, torch.Tensor]:
    """Stacks rows, padded on the right.

    Returns:
        ``input_ids`` (rows, length); and for the last ``keep`` columns ``mask`` and ``sampling_logprobs``
        (rows, keep); ``advantages`` and ``row_weights`` (rows,). No attention mask is needed: under causal attention
        nothing looks at padding on the right.
    """
    import torch

    length = max(weighted.row.length for weighted in rows)
    keep = length - min(len(weighted.row.prompt_ids) for weighted in rows)
    ids = np.full((len(rows), length), pad_id, dtype=np.int64)
    mask = np.zeros((len(rows), length), dtype=np.float32)
    logprobs = np.zeros((len(rows), length), dtype=np.float32)
    for i, weighted in enumerate(rows):
        row, start = weighted.row, len(weighted.row.prompt_ids)
        ids[i, : row.length] = row.prompt_ids + row.completion_ids
        mask[i, start : row.length] = row.loss_mask
        logprobs[i, start : row.length] = row.logprobs
    tensors = {
        "input_ids": ids,
        "mask": mask[:, length - keep :],
        "sampling_logprobs": logprobs[:, length - keep :],
        "advantages": np.array([weighted.advantage for weighted in rows], dtype=np.float32),
        "row_weights": np.array([weighted.weight for weighted in rows], dtype=np.float32),
    }
    return {name: torch.from_numpy(np.ascontiguousarray(array)).to(device) for name, array in tensors.items()}
