"""Allocation by signal, the gate by need, and the allocation that fades with the gap."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc_gym.errors import ConfigError
from trainers.allocation import Trials, fading_allocation, gap_lower_bound, signal_allocation, skill_needed
from trainers.stats import wilson

RATE = st.floats(0, 1)


@given(RATE, RATE, st.integers(2, 16), st.floats(0.1, 10))
def test_allocation_follows_its_definition(p1, p0, group, kappa):
    s1, s0 = math.sqrt(p1 * (1 - p1)), math.sqrt(p0 * (1 - p0))
    got = signal_allocation(p1, p0, group, kappa)
    assert 1 <= got <= group - 1
    if s1 + s0 > 1e-9:
        wanted = min(max(group * kappa * s1 / (kappa * s1 + s0), 1), group - 1)
        assert abs(got - wanted) <= 0.5 + 1e-9


def test_rollouts_go_where_the_outcome_varies():
    assert signal_allocation(0.95, 0.5, 8) == 2
    assert signal_allocation(0.5, 0.0, 8) == 7
    assert signal_allocation(1.0, 0.5, 8) == 1
    assert signal_allocation(1.0, 0.0, 8) == 4


@given(st.integers(0, 20), st.integers(1, 20), st.integers(0, 20), st.integers(1, 20))
def test_the_gap_is_bounded_by_the_intervals_of_both_rates(a, n, b, m):
    a, b = min(a, n), min(b, m)
    low = gap_lower_bound(Trials(a, n), Trials(b, m))
    assert wilson(a, n).low - wilson(b, m).high - 1e-9 <= low <= a / n - b / m


def test_the_skill_is_shown_where_a_group_without_it_would_be_blind():
    assert skill_needed(Trials(50, 64), Trials(0, 64), 8)
    assert not skill_needed(Trials(50, 64), Trials(12, 64), 8)  # skill-free success is common enough
    assert not skill_needed(Trials(0, 64), Trials(0, 64), 8)  # the skill does not help
    assert not skill_needed(Trials(8, 8), Trials(0, 8), 8)  # too few trials to be sure
    assert not skill_needed(Trials(8, 8), Trials(0, 0), 8)


def test_bad_arguments_are_named():
    with pytest.raises(ConfigError, match="group_size=1"):
        signal_allocation(0.5, 0.5, 1)
    with pytest.raises(ConfigError, match="3 of 2"):
        skill_needed(Trials(1, 2), Trials(3, 2), 8)
    with pytest.raises(ConfigError, match="got 8 and 0"):
        fading_allocation(0.5, 8, 0.0)
    with pytest.raises(ConfigError, match="got 1 and"):
        fading_allocation(0.5, 1)


@given(st.floats(-1, 1), st.floats(-1, 1), st.integers(2, 16), st.floats(0.05, 1))
def test_fewer_see_the_skill_as_the_gap_closes(gap, other, group, full):
    low, high = (fading_allocation(value, group, full) for value in sorted((gap, other)))
    assert 1 <= low <= high <= group // 2
    assert fading_allocation(full, group, full) == group // 2


def test_a_closed_gap_leaves_one_rollout_with_the_skill():
    assert [fading_allocation(gap, 8) for gap in (-0.3, 0.0, 0.1, 0.15, 0.2, 0.9)] == [1, 1, 2, 3, 4, 4]
