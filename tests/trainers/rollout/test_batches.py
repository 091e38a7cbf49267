from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from trainers.base import TokenRow, Trajectory
from trainers.learner.objective import policy_value
from trainers.losses import ClippedPolicyGradient, LossInputs
from trainers.rollout.batches import (
    TrainingRow,
    collate,
    forward_passes,
    make_training_rows,
    shared_passes,
    split_minibatches,
)


def trajectory(*rows: TokenRow) -> Trajectory:
    episode: Any = SimpleNamespace(task_type="heat")
    return Trajectory(episode, list(rows), 0)


def training(row: TokenRow, advantage: float, weight: float, number: int) -> TrainingRow:
    return TrainingRow(row, np.full(row.model_tokens, advantage), {"policy": weight}, number)


def loss_of(loss: ClippedPolicyGradient, logprobs: torch.Tensor, advantages: torch.Tensor, **optional: Any) -> Any:
    """Values, their sum over the tokens of rows of weight 1, and the log."""
    ones = torch.ones_like(logprobs)
    result = loss(LossInputs(logprobs, ones, advantages, optional))
    return result.values.sum(), {name: float(figure.sum()) for name, figure in result.log.items()}


def row(prompt: int, mask: list[int], start: int = 5) -> TokenRow:
    return TokenRow([2] * prompt, list(range(start, start + len(mask))), mask, [-0.5 * m for m in mask])


ROWS = st.lists(
    st.tuples(st.integers(1, 6), st.lists(st.integers(0, 1), min_size=1, max_size=9).map(lambda m: [*m, 1])),
    min_size=1,
    max_size=12,
)


@given(ROWS, st.integers(1, 6))
def test_every_row_lands_in_exactly_one_micro_batch(shapes: list[tuple[int, list[int]]], count: int) -> None:
    rows = [training(row(p, m), 1.0, 0.1, i) for i, (p, m) in enumerate(shapes)]
    batches = forward_passes(rows, count)
    assert len(batches) == count
    assert all(batches)
    assert sorted(w.trajectory for b in batches for w in b if w.weights) == list(range(len(rows)))


@given(ROWS, st.integers(1, 4), st.integers(0, 5))
def test_padding_and_cutting_into_micro_batches_do_not_change_the_loss(
    shapes: list[tuple[int, list[int]]], count: int, seed: int
) -> None:
    """The sum over micro-batches is the plain mean over rows of the mean over their tokens."""
    rng = np.random.default_rng(seed)
    rows = [row(p, m) for p, m in shapes]
    advantages = rng.normal(size=len(rows)).tolist()
    table = torch.tensor(rng.normal(size=64), dtype=torch.float64)
    reference = table + torch.tensor(rng.normal(size=64) * 0.1)
    trajectories = [trajectory(r) for r in rows]
    weighted = make_training_rows(trajectories, advantages, range(len(rows)), "trajectory", total=len(rows), tokens=1)
    total = 0.0
    for batch in forward_passes(weighted, count):
        tensors = collate(batch, 0, torch.device("cpu"), ["policy"])
        completion = tensors.tokens.input_ids[:, -tensors.tokens.mask.shape[1] :]
        figures = {"logprobs": table[completion], "ref_logprobs": reference[completion]}
        total += float(policy_value(ClippedPolicyGradient(kl_coef=0.3), tensors, figures, exact_sampling=True))
    expected = 0.0
    for r, advantage in zip(rows, advantages, strict=True):
        own = [token for token, mask in zip(r.completion_ids, r.loss_mask, strict=True) if mask]
        difference = reference[own] - table[own]
        kl = torch.exp(difference) - difference - 1
        expected += float((-advantage + 0.3 * kl).mean()) / len(rows)
    assert total == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_a_trajectory_of_many_rows_counts_once() -> None:
    long, short = [row(2, [1, 1, 1]), row(3, [1])], [row(2, [1, 1])]
    weighted = make_training_rows(
        [trajectory(*long), trajectory(*short)], [1.0, 1.0], [0, 1], "trajectory", total=2, tokens=6
    )
    shares = {i: sum(w.weights["policy"] * w.row.model_tokens for w in weighted if w.trajectory == i) for i in (0, 1)}
    assert shares == pytest.approx({0: 0.5, 1: 0.5})
    assert {w.weights["policy"] for w in weighted if w.trajectory == 0} == {1 / 8}


def test_values_per_token_are_cut_at_the_rows() -> None:
    played = trajectory(row(2, [1, 0, 1]), row(4, [1]))
    weighted = make_training_rows([played], [np.array([1.0, 2.0, 3.0])], [0], "trajectory", total=1, tokens=3)
    assert [w.advantages.tolist() for w in weighted] == [[1.0, 2.0], [3.0]]
    tensors = collate(weighted, 0, torch.device("cpu"))
    assert tensors.advantages.tolist() == [[1, 0, 2], [0, 0, 3]]


def test_collate_aligns_masks_with_tokens() -> None:
    rows = [training(row(4, [1, 0, 1]), 0.5, 0.2, 0), training(row(2, [1]), -1.0, 0.1, 1)]
    tensors = collate(rows, 0, torch.device("cpu"))
    assert tensors.tokens.input_ids.tolist() == [[2, 2, 2, 2, 5, 6, 7], [2, 2, 5, 0, 0, 0, 0]]
    assert tensors.tokens.mask.tolist() == [[0, 0, 1, 0, 1], [1, 0, 0, 0, 0]]
    assert tensors.figures["sampling_logprobs"].tolist() == [[0, 0, -0.5, 0, -0.5], [-0.5, 0, 0, 0, 0]]
    assert tensors.advantages.tolist() == [[0, 0, 0.5, 0, 0.5], [-1, 0, 0, 0, 0]]


@given(st.integers(1, 40), st.integers(1, 5), st.integers(0, 100))
def test_minibatches_deal_every_rollout_once(rollouts: int, count: int, seed: int) -> None:
    parts = list(split_minibatches(rollouts, count, seed))
    assert sorted(i for part in parts for i in part) == list(range(rollouts))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert parts == list(split_minibatches(rollouts, count, seed))


def test_the_sampling_ratio_scales_the_policy_term_only() -> None:
    logprobs, loss = torch.zeros(1, 2), ClippedPolicyGradient(kl_coef=0.5)
    ones, reference = torch.ones(1, 2), logprobs - 1
    plain, log = loss_of(loss, logprobs, ones, ref_logprobs=reference)
    halved, _ = loss_of(loss, logprobs, ones, ref_logprobs=reference, sampling_ratio=torch.full((1, 2), 0.5))
    assert float(halved - plain) == pytest.approx(1.0)
    assert log["kl"] == pytest.approx(2 * np.exp(-1))


def of_tokens(tokens: list[int], number: int) -> TrainingRow:
    return TrainingRow(
        TokenRow(tokens[:1], tokens[1:], [1] * len(tokens[1:]), []), np.zeros(1), {"policy": 1.0}, number
    )


TOKENS = st.lists(st.lists(st.integers(0, 2), min_size=2, max_size=9), max_size=20)


@given(TOKENS, st.integers(1, 8))
def test_every_row_lands_in_exactly_one_pass_in_the_order_of_its_tokens(tokens: list[list[int]], count: int) -> None:
    passes = shared_passes([of_tokens(ids, i) for i, ids in enumerate(tokens)], count)
    assert len(passes) == count
    assert all(passes)
    dealt = [training.trajectory for part in passes for training in part if training.weights]
    assert dealt == sorted(range(len(tokens)), key=lambda i: (tokens[i], i))


def test_passes_end_where_neighbours_share_least() -> None:
    # Three groups of unequal size: equal passes would cut the second one in two.
    rows = [[group, *range(10), *([i] * 6)] for group, size in ((3, 4), (4, 6), (5, 4)) for i in range(size)]
    passes = shared_passes([of_tokens(ids, i) for i, ids in enumerate(rows)], 3)
    assert [{training.row.prompt_ids[0] for training in part} for part in passes] == [{3}, {4}, {5}]


def test_nothing_to_train_on_is_padding_in_every_pass() -> None:
    assert [[training.weights for training in part] for part in shared_passes([], 3)] == [[{}]] * 3
