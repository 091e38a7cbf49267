"""The weights and baselines of the study's own variants."""

from __future__ import annotations

import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc_gym.errors import ConfigError
from trainers.advantages import raised_baseline, relabelling_weights

ROLLOUTS = st.lists(st.tuples(st.sampled_from([0.0, 1.0]), st.sampled_from("xy"), st.booleans()), min_size=1)


def branches(rollouts, task):
    return [[r for r, t, z in rollouts if t == task and z is injected] for injected in (True, False)]


@given(ROLLOUTS, st.floats(-1, 1))
def test_relabelling_weighs_won_injected_episodes_by_what_is_missing(rollouts, contrast):
    won, task, condition = zip(*rollouts, strict=True)
    got = relabelling_weights(won, task, condition, [contrast] * len(rollouts))
    for weight, (success, name, injected) in zip(got, rollouts, strict=True):
        _, plain = branches(rollouts, name)
        b0 = statistics.fmean(plain) if plain else 0.0
        assert weight == pytest.approx(max(contrast, 0.0) * (1 - b0) if injected and success else 0.0, abs=1e-12)
    whole = relabelling_weights(won, task, condition, [contrast] * len(rollouts), discounted=False)
    assert whole.tolist() == [max(contrast, 0.0) if s and z else 0.0 for s, _, z in rollouts]


def slow_baseline(rollouts, rho, sigma_min):
    for value, task, injected in rollouts:
        with_, plain = branches(rollouts, task)
        own = with_ if injected else plain
        b1 = statistics.fmean(with_) if with_ else 0.0
        baseline = b1 if injected else max(statistics.fmean(plain), rho * b1)
        yield (value - baseline) / max(statistics.pstdev(own), sigma_min)


@given(ROLLOUTS, st.floats(0, 1), st.floats(0.01, 1))
def test_the_raised_baseline_follows_its_definition(rollouts, rho, sigma_min):
    returns, task, condition = zip(*rollouts, strict=True)
    got = raised_baseline(returns, task, condition, rho, sigma_min)
    np.testing.assert_allclose(got, list(slow_baseline(rollouts, rho, sigma_min)), atol=1e-9)


def test_a_raised_baseline_blames_failures_that_the_skill_avoids():
    returns, condition = [1.0, 1.0, 0.0, 0.0], [1, 1, 0, 0]
    assert raised_baseline(returns, ["x"] * 4, condition, rho=0.0).tolist() == [0.0] * 4
    assert raised_baseline(returns, ["x"] * 4, condition, rho=0.5, sigma_min=0.5).tolist() == [0.0, 0.0, -1.0, -1.0]


def test_bad_arguments_are_named():
    with pytest.raises(ConfigError, match="rho lies in"):
        raised_baseline([1.0], ["x"], [1], rho=2.0)
    with pytest.raises(ConfigError, match="1 tasks"):
        relabelling_weights([1.0], ["x", "y"], [1], [0.5])
