"""Intervals: published values, symmetries, coverage."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc_gym.errors import ConfigError
from trainers.stats import Interval, bootstrap_mean, paired_difference, wilson

counts = st.tuples(*[st.integers(0, 60)] * 4).filter(lambda c: sum(c) > 0)


def test_wilson_agrees_with_published_values() -> None:
    # Newcombe 1998, Statistics in Medicine 17, 857-872, method 3.
    for successes, n, low, high in [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611)]:
        interval = wilson(successes, n)
        assert (interval.low, interval.high) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))


@given(st.integers(1, 500), st.data())
def test_wilson_stays_within_bounds_and_mirrors(n: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(0, n))
    interval, mirrored = wilson(k, n), wilson(n - k, n)
    assert 0.0 <= interval.low <= k / n <= interval.high <= 1.0
    assert interval.low == pytest.approx(1 - mirrored.high, abs=1e-12)


def test_the_paired_interval_agrees_with_published_values() -> None:
    # Newcombe 1998, Statistics in Medicine 17, 2635-2650, method 10.
    interval = paired_difference(36, 12, 2, 0)
    assert (interval.low, interval.high) == (pytest.approx(0.0569, abs=5e-5), pytest.approx(0.3404, abs=5e-5))


@given(counts)
def test_the_paired_interval_holds_the_difference_and_is_antisymmetric(c: tuple[int, int, int, int]) -> None:
    both, first, second, neither = c
    interval, swapped = paired_difference(*c), paired_difference(both, second, first, neither)
    assert -1.0 <= interval.low <= (first - second) / sum(c) + 1e-12
    assert (first - second) / sum(c) - 1e-12 <= interval.high <= 1.0
    assert interval.low == pytest.approx(-swapped.high, abs=1e-12)


def test_agreement_narrows_the_paired_interval_but_never_to_a_point() -> None:
    agreeing, mixed = paired_difference(20, 0, 0, 20), paired_difference(10, 10, 10, 10)
    assert 0.0 < agreeing.high - agreeing.low < mixed.high - mixed.low


@pytest.mark.parametrize("shared", [0.0, 0.6])
def test_the_paired_interval_covers_what_it_promises(shared: float) -> None:
    rng = np.random.default_rng(5)
    p, q, n, trials = 0.7, 0.4, 40, 1500
    luck = rng.random((trials, n, 2))
    luck[..., 1] = np.where(rng.random((trials, n)) < shared, luck[..., 0], luck[..., 1])
    first, second = luck[..., 0] < p, luck[..., 1] < q
    hits = 0
    for a, b in zip(first, second, strict=True):
        interval = paired_difference(int((a & b).sum()), int((a & ~b).sum()), int((~a & b).sum()), int((~a & ~b).sum()))
        hits += interval.low <= p - q <= interval.high
    assert 0.93 <= hits / trials <= 0.985


def test_the_bootstrap_is_fixed_by_its_seed_and_near_the_normal_interval() -> None:
    values = np.random.default_rng(0).normal(0.3, 0.2, 100).tolist()
    interval = bootstrap_mean(values, seed=1, resamples=3000)
    assert interval == bootstrap_mean(values, seed=1, resamples=3000)
    assert interval != bootstrap_mean(values, seed=2, resamples=3000)
    half = 1.96 * np.std(values) / 10
    assert interval.low == pytest.approx(np.mean(values) - half, abs=0.006)
    assert interval.high == pytest.approx(np.mean(values) + half, abs=0.006)


def test_touching_is_not_excluding() -> None:
    assert not Interval(0.0, 0.5).excludes(0.0)
    assert Interval(0.01, 0.5).excludes(0.0)


def test_bad_input_is_named() -> None:
    for call in (
        lambda: wilson(3, 2),
        lambda: wilson(0, 0),
        lambda: wilson(1, 2, level=1.0),
        lambda: paired_difference(0, 0, 0, 0),
        lambda: paired_difference(1, -1, 0, 0),
        lambda: bootstrap_mean([], seed=0),
    ):
        with pytest.raises(ConfigError):
            call()
