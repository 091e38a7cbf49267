"""Training rows, what an optimiser step sees of a trajectory; and how they become forward passes and tensors.

Figures per token have one index: the own tokens of a trajectory, all its rows one after the other. A row holds its
part of them; :meth:`Tokens.place` puts them into the columns of a micro-batch.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from skillc_gym.errors import ConfigError
from trainers.advantages import FloatArray, Values
from trainers.base import Aggregation, MaskTruncated, TokenRow, Trajectory

if TYPE_CHECKING:
    import torch

_Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class TrainingRow:
    """A row with its share of the objective."""

    row: TokenRow
    """The tokens."""
    advantages: FloatArray
    """One per own token, float64[row.model_tokens]."""
    weights: Mapping[str, float]
    """Weight of each own token in each loss that acts on the row, by the loss's name; none for padding."""
    trajectory: int
    """Number of the rollout in the process's part of the update; -1 for a row of another origin."""
    task_type: str = ""
    """Type of its task, from which a teacher's skill is chosen."""
    targets: Mapping[str, FloatArray] = field(default_factory=dict)
    """Further figures per own token that a loss asked for, by name."""
    teachers: Mapping[str, TokenRow] = field(default_factory=dict)
    """The same completion behind another prompt, for losses in which a teacher scores it, by their names."""

    def figure(self, name: str) -> FloatArray:
        """A target of the row, 0 where it has none of that name."""
        return self.targets.get(name, np.zeros(self.row.model_tokens))


def token_share(aggregation: Aggregation, *, rollouts: int, own: int, tokens: int, longest: int) -> float:
    """Share of each of a rollout's ``own`` tokens, of so many rollouts with so many own ``tokens`` in all.

    By ``aggregation`` a rollout counts ``1/T_i``, T_i its own tokens over all its rows ("trajectory"), all tokens count
    alike ("token"), or a rollout counts ``1/longest`` of a trajectory ("constant").
    """
    divisor = {"trajectory": rollouts * own, "token": tokens, "constant": rollouts * longest}[aggregation]
    return 1.0 / max(divisor, 1)


def token_weight(share: float, factor: float) -> float:
    """Weight of an own token in a loss: its share in the update, times by how much the loss acts on its rollout."""
    # In the precision of the tensors, so that a weight is the same number wherever it was made.
    return float(np.float32(share) * np.float32(factor))


def split_minibatches(rollouts: int, count: int, seed: int) -> list[list[int]]:
    """Splits an update's rollouts into its optimiser steps, at random if there are several; about as many in each."""
    order = np.arange(rollouts) if count == 1 else np.random.default_rng(seed).permutation(rollouts)
    return [part.tolist() for part in np.array_split(order, count)]


def make_training_rows(
    trajectories: Sequence[Trajectory],
    advantages: Values | Sequence[float],
    which: Sequence[int],
    aggregation: Aggregation,
    *,
    total: int,
    tokens: int,
    longest: int = 1,
    factors: Sequence[Mapping[str, float]] | None = None,
    targets: Mapping[str, Values] | None = None,
) -> list[TrainingRow]:
    """Makes the rows of the rollouts ``which``, with the weight of their tokens in the objective.

    Advantages and targets are numbers or arrays per own token, one for each rollout. A token's share is
    :func:`token_share`; ``total`` rollouts and own ``tokens`` are those of the step over all processes. ``factors`` say
    by how much each loss acts on each rollout, the policy gradient alone by default.
    """
    made = []
    for i in which:
        trajectory = trajectories[i]
        own = trajectory.model_tokens
        share = token_share(aggregation, rollouts=total, own=own, tokens=tokens, longest=longest)
        acting = factors[i] if factors else {"policy": 1.0}
        weights = {name: token_weight(share, factor) for name, factor in acting.items() if factor}
        values = np.broadcast_to(np.asarray(advantages[i], dtype=np.float64), own)
        figures = {name: np.asarray(of_all[i], dtype=np.float64) for name, of_all in (targets or {}).items()}
        for row, part in trajectory.own_rows():
            cut = {name: np.broadcast_to(figure, own)[part] for name, figure in figures.items()}
            made.append(TrainingRow(row, values[part], weights, i, trajectory.episode.task_type, cut))
    return made


def is_masked(trajectory: Trajectory, which: MaskTruncated) -> bool:
    """Whether a trajectory teaches the policy nothing because it was cut: by the context, or by any limit."""
    episode = trajectory.episode
    return (which == "all" and episode.truncated) or (which == "context" and episode.cut == "context")


def padding_row() -> TrainingRow:
    """A row that weighs nothing."""
    return TrainingRow(TokenRow([0], [0], [1], [0.0], (1,)), np.zeros(1), {}, -1)


# Passes --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tokens:
    """Rows of tokens, padded on the right, where nothing looks under causal attention: no mask is needed for it."""

    input_ids: torch.Tensor
    """int64 (rows, length)."""
    mask: torch.Tensor
    """1 for the model's own tokens, for the last ``tokens`` columns of the ids; float32 (rows, tokens)."""
    allowed: torch.Tensor | None = None
    """Of each own token, row by row, the tokens among which it was drawn: int64 (own, most), filled up with -1; None
    where the whole vocabulary was."""

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
    """One forward and backward pass; its tensors are float32 (rows, tokens), 0 where a token is not the model's own."""

    tokens: Tokens
    advantages: torch.Tensor
    weights: Mapping[str, torch.Tensor]
    """Weight of every token in each loss, by the loss's name; 0 for rows on which the loss does not act, too."""
    figures: Mapping[str, torch.Tensor]
    """By name: ``sampling_logprobs``, the rows' targets, and what the learner computes before the update, such as
    ``old_logprobs``."""
    rows: Sequence[TrainingRow] = ()


def collate_tokens(rows: Sequence[TokenRow], pad_id: int, device: torch.device) -> Tokens:
    """Stacks rows of tokens."""
    import torch

    # Figures begin where the shortest prompt ends: what stands before is nobody's own token.
    length, first = max(row.length for row in rows), min(len(row.prompt_ids) for row in rows)
    ids = np.full((len(rows), length), pad_id, dtype=np.int64)
    mask = np.zeros((len(rows), length - first), dtype=np.float32)
    for i, row in enumerate(rows):
        ids[i, : row.length] = row.ids
        mask[i, len(row.prompt_ids) - first : row.length - first] = row.loss_mask
    return Tokens(torch.from_numpy(ids).to(device), torch.from_numpy(mask).to(device), _allowed(rows, device))


def _allowed(rows: Sequence[TokenRow], device: torch.device) -> torch.Tensor | None:
    import torch

    every = [each for row in rows for each in row.allowed]
    if not every:
        return None
    if len(every) != (own := sum(sum(row.loss_mask) for row in rows)):
        raise ConfigError(
            f"Rows that say which tokens were allowed and rows that do not stand in one pass: {len(every)} entries for "
            f"{own} own tokens. With engine=choosing every row of one's own needs them too"
        )
    found = [torch.tensor(each) for each in every]
    return torch.nn.utils.rnn.pad_sequence(found, batch_first=True, padding_value=-1).to(device)


def collate(
    rows: Sequence[TrainingRow],
    pad_id: int,
    device: torch.device,
    losses: Sequence[str] = (),
    targets: Collection[str] = (),
) -> MicroBatch:
    """Stacks training rows; ``targets`` are there whether the rows have them or not, 0 where they do not."""
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
    """Splits rows into so many passes, similar lengths together and about as many tokens in each; none is empty."""
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
    from trainers.engines.batching import common_prefix

    # In the order of their tokens, rows that share a beginning are neighbours.
    ordered = sorted(rows, key=lambda training: (training.row.ids, training.trajectory))
    tokens = [np.array(training.row.ids, dtype=np.int64) for training in ordered]
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
