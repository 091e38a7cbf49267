"""The schemes of the published methods over whole trajectories."""

from __future__ import annotations

import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.trainers.rollouts_of import batch_of, episode
from trainers.advantages import rloo
from trainers.advantages.group_baselines import RaisedBaseline, Rloo, Utilisation, usual_success, utilisation
from trainers.advantages.per_step import Gigpo, Ppo


def test_gigpo_gives_every_token_its_steps_value():
    batch = batch_of(
        [
            episode(won=True, actions=["a", "b"], observations=["start", "left"]),
            episode(won=False, actions=["a", "b"], observations=["start", "right"]),
        ]
    )
    got = Gigpo()(batch)
    assert [own.tolist() for own in got.values] == [
        [0.5 + 0.475] * 2 + [0.5] * 2,
        [-0.5 - 0.475] * 2 + [-0.5] * 2,
    ]
    assert got.log["step_cluster_share"] == 0.5


def test_gigpo_puts_a_return_that_no_rewards_add_up_to_on_the_last_step():
    played = [episode(won=True, observations=["s", "t"]), episode(won=False, observations=["s", "t"])]
    batch = batch_of(played, returns=np.array([0.25, 0.0]))
    first = Gigpo(gamma=1.0)(batch).values[0]
    assert first.tolist() == [0.125 + 0.125] * 4


def test_ppo_whitens_the_return_minus_the_value():
    values = [np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.5, 0.0, 0.0, 0.1])]
    batch = batch_of([episode(won=True), episode("u", won=False)], scores={"values": values})
    plain = Ppo(whitening=False)(batch)
    np.testing.assert_allclose(plain.values[0], 1.0 - values[0])
    np.testing.assert_allclose(plain.values[1], -values[1])
    np.testing.assert_allclose(plain.targets["value_targets"][0], np.ones(4))
    np.testing.assert_allclose(plain.targets["old_values"][1], values[1])
    flat = np.concatenate(list(Ppo()(batch).values))
    assert (flat.mean(), flat.var()) == (pytest.approx(0, abs=1e-9), pytest.approx(1, abs=1e-6))


def test_simple_schemes_are_their_formulas():
    batch = batch_of([episode(won=True), episode(won=False), episode(won=False, condition=1)])
    np.testing.assert_array_equal(Rloo()(batch).values, rloo(batch.returns, batch.task))
    assert RaisedBaseline(raise_by=0.0)(batch).values[2] == 0.0


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
        own = branch[t, True]
        expected = 0.0
        if z and len(set(own)) > 1:
            expected = (r - statistics.fmean(own)) / (statistics.pstdev(own) + 1e-6)
        if z and t in gap and spread > 1e-6:
            expected += min(max((gap[t] - statistics.fmean(gap.values())) / (spread + 1e-6), -3), 3)
        assert value == pytest.approx(expected, abs=1e-6)


def test_guided_rollouts_are_left_to_distillation():
    batch = batch_of(
        [
            episode(won=True, condition=1, skill="heat"),
            episode(won=False, condition=1, skill="heat"),
            episode(won=True, condition=1, skill="general+heat"),
            episode(won=True, condition=0),
        ]
    )
    values = Utilisation()(batch).values
    assert values[0] > 0 > values[1]
    assert values[2:].tolist() == [0.0, 0.0]
    assert usual_success(batch) == {"heat": 0.5}
