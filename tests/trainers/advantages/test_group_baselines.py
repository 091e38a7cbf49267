"""RLOO, GRPO, GiGPO, GAE and whitening against loops written from their definitions."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc_gym.errors import ConfigError
from trainers.advantages import gae, gigpo, grpo, rloo, whiten

REWARD = st.floats(-3, 3, allow_nan=False, width=32)
FRACTION = st.floats(0, 1)


@st.composite
def batches(draw):
    """Returns, task, anchors and step rewards of a few rollouts."""
    size = draw(st.integers(1, 8))
    task = draw(st.lists(st.sampled_from("xyz"), min_size=size, max_size=size))
    rewards = [draw(st.lists(REWARD, min_size=0, max_size=5)) for _ in range(size)]
    anchors = [[draw(st.sampled_from("abc")) for _ in own] for own in rewards]
    return draw(st.lists(REWARD, min_size=size, max_size=size)), task, anchors, rewards


def slow_rloo(returns, task):
    result = []
    for i, value in enumerate(returns):
        others = [r for j, (r, t) in enumerate(zip(returns, task, strict=True)) if t == task[i] and j != i]
        result.append(value - sum(others) / len(others) if others else 0.0)
    return result


def slow_relative(value, group, std):
    if len(group) == 1 or len(set(group)) == 1:
        return 0.0
    centred = value - statistics.fmean(group)
    return centred / (statistics.pstdev(group) + 1e-6) if std else centred


def slow_gigpo(returns, task, anchors, rewards, gamma, weight, std):
    clusters: dict[tuple[str, str], list[float]] = {}
    to_go = [[sum(gamma ** (k - t) * own[k] for k in range(t, len(own))) for t in range(len(own))] for own in rewards]
    for i, own in enumerate(to_go):
        for t, value in enumerate(own):
            clusters.setdefault((task[i], anchors[i][t]), []).append(value)
    result = []
    for i, own in enumerate(to_go):
        episode = slow_relative(returns[i], [r for r, t in zip(returns, task, strict=True) if t == task[i]], std)
        steps = [slow_relative(value, clusters[task[i], anchors[i][t]], std) for t, value in enumerate(own)]
        result.append([episode + weight * step for step in steps])
    return result


@given(batches())
def test_rloo_leaves_one_out(batch):
    returns, task, _, _ = batch
    np.testing.assert_allclose(rloo(returns, task), slow_rloo(returns, task), atol=1e-9)


@given(batches(), st.floats(1e-6, 0.5))
def test_grpo_divides_by_the_spread_of_the_task(batch, eps):
    returns, task, _, _ = batch
    groups = {name: [r for r, t in zip(returns, task, strict=True) if t == name] for name in task}
    if any(0 < max(group) - min(group) < 1e-3 for group in groups.values()):
        return
    expected = [
        (r - statistics.fmean(groups[t])) / (statistics.pstdev(groups[t]) + eps) if len(set(groups[t])) > 1 else 0.0
        for r, t in zip(returns, task, strict=True)
    ]
    np.testing.assert_allclose(grpo(returns, task, eps), expected, atol=1e-6, rtol=1e-9)


@given(batches(), st.floats(0.5, 1), st.floats(0, 2), st.booleans())
def test_gigpo_follows_its_definition(batch, gamma, weight, std):
    returns, task, anchors, rewards = batch
    # Where a spread is rounding noise, dividing by it makes noise of any size.
    if std and any(0 < np.ptp([*v, v[0]]) < 1e-3 for v in (returns, [r for own in rewards for r in own]) if v):
        return
    got = gigpo(returns, task, anchors, rewards, gamma, weight, std)
    expected = slow_gigpo(returns, task, anchors, rewards, gamma, weight, std)
    assert [len(own) for own in got] == [len(own) for own in rewards]
    for ours, theirs in zip(got, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6, rtol=1e-5 if std else 1e-9)


@given(batches(), st.randoms(use_true_random=False))
def test_the_order_of_a_batch_does_not_matter(batch, random):
    returns, task, anchors, rewards = batch
    order = list(range(len(returns)))
    random.shuffle(order)
    mixed = [[values[i] for i in order] for values in (returns, task, anchors, rewards)]
    straight, shuffled = gigpo(returns, task, anchors, rewards), gigpo(*mixed)
    for place, i in enumerate(order):
        np.testing.assert_array_equal(shuffled[place], straight[i])
    np.testing.assert_array_equal(rloo(mixed[0], mixed[1]), rloo(returns, task)[order])


@given(st.lists(st.tuples(REWARD, REWARD), max_size=8), FRACTION, FRACTION)
def test_gae_is_the_weighted_sum_of_temporal_differences(steps, gamma, lam):
    rewards, values = [r for r, _ in steps], [v for _, v in steps]
    following = [*values[1:], 0.0]
    deltas = [r + gamma * after - v for r, v, after in zip(rewards, values, following, strict=False)]
    expected = [
        math.fsum((gamma * lam) ** (k - t) * deltas[k] for k in range(t, len(steps))) for t in range(len(steps))
    ]
    np.testing.assert_allclose(gae(rewards, values, gamma, lam), expected, atol=1e-9)


def test_no_rollouts_have_no_advantages():
    assert rloo([], []).size == grpo([], []).size == gae([], []).size == 0
    assert gigpo([], [], [], []) == []
    assert [own.size for own in gigpo([1.0], ["x"], [[]], [[]])] == [0]


def test_arrays_and_tensors_are_read_like_lists():
    torch = pytest.importorskip("torch")
    returns, task, seen, rewards = [1.0, 0.0, 0.5], [0, 0, 1], [[4, 5], [4], [4]], [[0.0, 1.0], [0.0], [0.5]]
    for form in (np.array, torch.tensor):
        assert rloo(form(returns), form(task)).tolist() == rloo(returns, task).tolist() == [1.0, -1.0, 0.0]
        assert grpo(form(returns), list(form(task))).tolist() == grpo(returns, task).tolist()
        got = gigpo(form(returns), form(task), [form(own) for own in seen], [form(own) for own in rewards])
        for ours, theirs in zip(got, gigpo(returns, task, seen, rewards), strict=True):
            np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_array_equal(gae(form(returns), form(returns)), gae(returns, returns))
    half = torch.tensor(returns, dtype=torch.bfloat16, requires_grad=True)
    assert rloo(half, task).tolist() == [1.0, -1.0, 0.0]


def test_whitening_is_over_all_tokens_together():
    got = whiten([np.array([1.0, 2.0]), np.array([]), np.array([6.0])])
    assert [own.size for own in got] == [2, 0, 1]
    flat = np.concatenate(got)
    assert flat.mean() == pytest.approx(0, abs=1e-12)
    assert flat.var() == pytest.approx(1, abs=1e-6)
    assert whiten([]) == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rloo([1.0, 0.0], ["x"]), "2 tasks"),
        (lambda: gigpo([1.0], ["x"], [["a"], ["b"]], [[0.0]]), "one list per rollout, 1; got 2 and 1"),
        (lambda: gigpo([1.0], ["x"], [["a"]], [[0.0, 1.0]]), r"rewards\[0\] must have shape \(1,\)"),
        (lambda: gigpo([1.0], ["x"], [["a"]], [[0.0]], gamma=1.5), "gamma lies in"),
        (lambda: gae([1.0], [0.0, 1.0]), "rewards"),
        (lambda: rloo(["won", "lost"], ["x", "x"]), "returns must be plain numbers"),
        (lambda: rloo([1.0, 0.0], None), "task must be a sequence of keys"),
        (lambda: gae([1.0], [0.0], lam=-1), "lam lies in"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ConfigError, match=message):
        call()
