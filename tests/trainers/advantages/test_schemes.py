"""Schemes and their formulas, RLOO to the study's own, against loops written from their definitions."""

import math
import statistics
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc_gym.errors import ConfigError
from tests.trainers.toys import batch_of, episode
from trainers.advantages import gae, gigpo, grpo, raised_baseline, relabelling_weights, rloo, whiten
from trainers.advantages.group_baselines import Grpo, RaisedBaseline, Rloo, Utilisation, usual_success, utilisation
from trainers.advantages.per_step import Gigpo, Ppo

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


@pytest.mark.parametrize(("group_by", "groups"), [("task", "aaaa"), ("condition", "aaab"), ("text", "aabc")])
def test_a_group_is_a_task_a_condition_or_a_shown_text(group_by, groups):
    shown = [("heat", 1), ("heat", 1), ("cool", 1), ("", 0)]
    played = [replace(episode(won=n % 2 == 0, condition=z), skill_sha256=s) for n, (s, z) in enumerate(shown)]
    batch = batch_of(played)
    assert np.allclose(Grpo(group_by=group_by)(batch).values, grpo(batch.returns, list(groups)))
    assert np.array_equal(Rloo()(batch).values, rloo(batch.returns, batch.task))
    assert RaisedBaseline(raise_by=0.0)(batch).values[3] == 0.0
    expected = raised_baseline(batch.returns, batch.task, batch.condition, 0.5, 0.1)
    assert np.array_equal(RaisedBaseline()(batch).values, expected)


def slow_rloo(returns, task):
    result = []
    for i, value in enumerate(returns):
        others = [r for j, (r, t) in enumerate(zip(returns, task, strict=True)) if t == task[i] and j != i]
        result.append(value - sum(others) / len(others) if others else 0.0)
    return result


def slow_relative(value, group, eps):
    """Less the group's mean; over its spread plus eps, where that is not None."""
    if len(set(group)) == 1:
        return 0.0
    centred = value - statistics.fmean(group)
    return centred if eps is None else centred / (statistics.pstdev(group) + eps)


def slow_gigpo(returns, task, anchors, rewards, gamma, weight, std):
    clusters: dict[tuple[str, str], list[float]] = {}
    eps = 1e-6 if std else None
    to_go = [[sum(gamma ** (k - t) * own[k] for k in range(t, len(own))) for t in range(len(own))] for own in rewards]
    for i, own in enumerate(to_go):
        for t, value in enumerate(own):
            clusters.setdefault((task[i], anchors[i][t]), []).append(value)
    result = []
    for i, own in enumerate(to_go):
        episode = slow_relative(returns[i], [r for r, t in zip(returns, task, strict=True) if t == task[i]], eps)
        steps = [slow_relative(value, clusters[task[i], anchors[i][t]], eps) for t, value in enumerate(own)]
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
    expected = [slow_relative(r, groups[t], eps) for r, t in zip(returns, task, strict=True)]
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
    assert gigpo([], [], [], []) == whiten([]) == []
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
        (lambda: raised_baseline([1.0], ["x"], [1], rho=2.0), "rho lies in"),
        (lambda: raised_baseline([-1.0, 0.0], ["x", "x"], [1, 0]), "returns in"),
        (lambda: relabelling_weights([1.0], ["x", "y"], [1], [0.5]), "1 tasks"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ConfigError, match=message):
        call()


def test_gigpo_gives_every_token_its_steps_value():
    seen = {True: ["start", "left"], False: ["start", "right"]}
    got = Gigpo()(batch_of([episode(won=won, observations=seen[won]) for won in (True, False)]))
    assert [own.tolist() for own in got.values] == [[0.5 + 0.475] * 2 + [0.5] * 2, [-0.5 - 0.475] * 2 + [-0.5] * 2]
    assert got.log["step_cluster_share"] == 0.5


def test_gigpo_puts_a_return_that_no_rewards_add_up_to_on_the_last_step():
    played = [episode(won=won, observations=["s", "t"]) for won in (True, False)]
    first = Gigpo(gamma=1.0)(batch_of(played, returns=np.array([0.25, 0.0]))).values[0]
    assert first.tolist() == [0.125 + 0.125] * 4


def test_ppo_whitens_the_return_minus_the_value():
    values = [np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.5, 0.0, 0.0, 0.1]), np.array([])]
    played = [episode(won=True), episode("u", won=False), episode(won=False, actions=())]
    batch = batch_of(played, scores={"values": values})
    plain = Ppo(whitening=False)(batch)
    np.testing.assert_allclose(plain.values[0], 1.0 - values[0])
    np.testing.assert_allclose(plain.values[1], -values[1])
    np.testing.assert_allclose(plain.targets["value_targets"][0], np.ones(4))
    np.testing.assert_allclose(plain.targets["old_values"][1], values[1])
    whitened = Ppo()(batch).values
    assert [own.size for own in whitened] == [4, 4, 0]
    flat = np.concatenate(whitened)
    assert (flat.mean(), flat.var()) == (pytest.approx(0, abs=1e-9), pytest.approx(1, abs=1e-6))


ROLLOUTS = st.lists(
    st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.sampled_from("xyz"), st.booleans()), min_size=1, max_size=20
)


@given(ROLLOUTS)
def test_utilisation_follows_its_definition(rollouts):
    returns, task, condition = zip(*rollouts, strict=True)
    branch = {(t, z): [r for r, u, y in rollouts if (u, y) == (t, z)] for t in "xyz" for z in (True, False)}
    gap = {
        t: statistics.fmean(branch[t, True]) - statistics.fmean(branch[t, False])
        for t in "xyz"
        if all(branch[t, z] for z in (True, False))
    }
    spread = statistics.pstdev(gap.values()) if gap else 0.0
    got = utilisation(returns, task, condition)
    for value, (r, t, z) in zip(got, rollouts, strict=True):
        expected = slow_relative(r, branch[t, True], 1e-6) if z else 0.0
        if z and t in gap and spread > 1e-6:
            expected += min(max((gap[t] - statistics.fmean(gap.values())) / (spread + 1e-6), -3), 3)
        assert value == pytest.approx(expected, abs=1e-6)


def test_guided_rollouts_are_left_to_distillation():
    played = [(True, 1, "heat"), (False, 1, "heat"), (True, 1, "general+heat"), (True, 0, "")]
    batch = batch_of([episode(won=won, condition=z, skill=skill) for won, z, skill in played])
    values = Utilisation()(batch).values
    assert values[0] > 0 > values[1]
    assert values[2:].tolist() == [0.0, 0.0]
    assert usual_success(batch) == {"heat": 0.5}


WON_OR_LOST = st.lists(st.tuples(st.sampled_from([0.0, 1.0]), st.sampled_from("xy"), st.booleans()), min_size=1)


def branches(rollouts, task):
    return [[r for r, t, z in rollouts if t == task and z is injected] for injected in (True, False)]


@given(WON_OR_LOST, st.floats(-1, 1))
def test_relabelling_weighs_won_injected_episodes_by_what_is_missing(rollouts, contrast):
    won, task, condition = zip(*rollouts, strict=True)
    got = relabelling_weights(won, task, condition, [contrast] * len(rollouts))
    for weight, (success, name, injected) in zip(got, rollouts, strict=True):
        _, plain = branches(rollouts, name)
        b0 = statistics.fmean(plain) if plain else 0.0
        assert weight == pytest.approx(max(contrast, 0.0) * (1 - b0) if injected and success else 0.0, abs=1e-12)
    whole = relabelling_weights(won, task, condition, [contrast] * len(rollouts), discounted=False)
    assert whole.tolist() == [max(contrast, 0.0) if s and z else 0.0 for s, _, z in rollouts]


@given(WON_OR_LOST, st.floats(0, 1), st.floats(0.01, 1))
def test_the_raised_baseline_follows_its_definition(rollouts, rho, sigma_min):
    returns, task, condition = zip(*rollouts, strict=True)
    got = raised_baseline(returns, task, condition, rho, sigma_min)
    for advantage, (value, name, injected) in zip(got, rollouts, strict=True):
        with_, plain = branches(rollouts, name)
        b1, b0 = (statistics.fmean(own) if own else 0.0 for own in (with_, plain))
        baseline, spread = b1 if injected else max(b0, rho * b1), statistics.pstdev(with_ if injected else plain)
        assert advantage == pytest.approx((value - baseline) / max(spread, sigma_min), abs=1e-9)
