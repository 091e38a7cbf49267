from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from trainers.losses.policy_gradient import objective
from trainers.rollout.collate import WeightedRow, collate, micro_batches, minibatches, weigh
from trainers.rollout.rows import TokenRow


def row(prompt: int, mask: list[int], start: int = 5) -> TokenRow:
    return TokenRow([2] * prompt, list(range(start, start + len(mask))), mask, [-0.5 * m for m in mask])


ROWS = st.lists(
    st.tuples(st.integers(1, 6), st.lists(st.integers(0, 1), min_size=1, max_size=9).map(lambda m: [*m, 1])),
    min_size=1,
    max_size=12,
)


@given(ROWS, st.integers(1, 6))
def test_every_row_lands_in_exactly_one_micro_batch(shapes: list[tuple[int, list[int]]], count: int) -> None:
    rows = [WeightedRow(row(p, m), 1.0, 0.1, i) for i, (p, m) in enumerate(shapes)]
    batches = micro_batches(rows, count)
    assert len(batches) == count
    assert all(batches)
    assert sorted(w.trajectory for b in batches for w in b if w.weight) == list(range(len(rows)))


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
    weighted = weigh([[r] for r in rows], advantages, range(len(rows)), "trajectory", trajectories=len(rows), tokens=1)
    total = 0.0
    for batch in micro_batches(weighted, count):
        tensors = collate(batch, 0, torch.device("cpu"))
        completion = tensors["input_ids"][:, -tensors["mask"].shape[1] :]
        loss = objective(
            table[completion], tensors["advantages"], tensors["mask"], tensors["row_weights"],
            ref_logprobs=reference[completion], beta=0.3,
        ).loss  # fmt: skip
        total += float(loss)
    expected = 0.0
    for r, advantage in zip(rows, advantages, strict=True):
        own = [token for token, mask in zip(r.completion_ids, r.loss_mask, strict=True) if mask]
        difference = reference[own] - table[own]
        kl = torch.exp(difference) - difference - 1
        expected += float((-advantage + 0.3 * kl).mean()) / len(rows)
    assert total == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_a_trajectory_of_many_rows_counts_once() -> None:
    long, short = [row(2, [1, 1, 1]), row(3, [1])], [row(2, [1, 1])]
    weighted = weigh([long, short], [1.0, 1.0], [0, 1], "trajectory", trajectories=2, tokens=6)
    shares = {i: sum(w.weight * w.row.model_tokens for w in weighted if w.trajectory == i) for i in (0, 1)}
    assert shares == pytest.approx({0: 0.5, 1: 0.5})
    assert {w.weight for w in weighted if w.trajectory == 0} == {1 / 8}


def test_by_token_all_tokens_count_alike() -> None:
    weighted = weigh([[row(2, [1, 0, 1])], [row(2, [1])]], [1.0, 1.0], [0, 1], "token", trajectories=2, tokens=3)
    assert [w.weight for w in weighted] == pytest.approx([1 / 3, 1 / 3])


def test_collate_aligns_masks_with_tokens() -> None:
    rows = [WeightedRow(row(4, [1, 0, 1]), 0.5, 0.2, 0), WeightedRow(row(2, [1]), -1.0, 0.1, 1)]
    tensors = collate(rows, 0, torch.device("cpu"))
    assert tensors["input_ids"].tolist() == [[2, 2, 2, 2, 5, 6, 7], [2, 2, 5, 0, 0, 0, 0]]
    assert tensors["mask"].tolist() == [[0, 0, 1, 0, 1], [1, 0, 0, 0, 0]]
    assert tensors["sampling_logprobs"].tolist() == [[0, 0, -0.5, 0, -0.5], [-0.5, 0, 0, 0, 0]]


@given(st.integers(1, 40), st.integers(1, 5), st.integers(0, 100))
def test_minibatches_deal_every_rollout_once(rollouts: int, count: int, seed: int) -> None:
    parts = list(minibatches(rollouts, count, seed))
    assert sorted(i for part in parts for i in part) == list(range(rollouts))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert parts == list(minibatches(rollouts, count, seed))


def test_clipping_stops_gradients_only_on_the_far_side() -> None:
    logprobs = torch.tensor([[0.5, -0.5, 0.5, -0.5]], requires_grad=True)
    mask, weight = torch.ones(1, 4), torch.ones(1)
    for advantage, frozen in ((1.0, [True, False, True, False]), (-1.0, [False, True, False, True])):
        result = objective(logprobs, torch.tensor([advantage]), mask, weight, old_logprobs=torch.zeros(1, 4))
        (gradient,) = torch.autograd.grad(result.loss, logprobs)
        assert (gradient[0] == 0).tolist() == frozen
        assert int(result.clipped) == 2


def test_the_correction_scales_the_policy_term_only() -> None:
    logprobs, mask, weight = torch.zeros(1, 2), torch.ones(1, 2), torch.ones(1)
    plain = objective(logprobs, torch.ones(1), mask, weight, ref_logprobs=logprobs - 1, beta=0.5)
    halved = objective(
        logprobs, torch.ones(1), mask, weight, ref_logprobs=logprobs - 1, beta=0.5, correction=torch.full((1, 2), 0.5)
    )
    assert float(halved.loss - plain.loss) == pytest.approx(1.0)
    assert float(plain.kl_sum) == pytest.approx(2 * np.exp(-1))
