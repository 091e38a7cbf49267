"""Tests of several differences at once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainers.stats import holm, mean_difference


def test_holm_steps_down():
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03}) == pytest.approx({"a": 0.03, "b": 0.06, "c": 0.06})
    assert holm({}) == {}


@given(st.dictionaries(st.text(max_size=3), st.floats(0, 1), max_size=6))
def test_holm_never_lowers_a_p_value_and_keeps_their_order(p_values):
    adjusted = holm(p_values)
    names = sorted(p_values, key=lambda name: p_values[name])
    assert all(p_values[name] <= adjusted[name] <= 1 for name in p_values)
    assert [adjusted[name] for name in names] == sorted(adjusted.values())


def test_a_difference_has_intervals_of_both_levels():
    found = mean_difference([([1.0, 0.0, 1.0], [0.0, 0.0, 1.0]), ([1.0, 1.0, 1.0], [0.0, 0.0, 1.0])])
    assert found.mean == pytest.approx(0.5)
    wide, inner = found.interval, found.interval_90
    assert wide is not None
    assert inner is not None
    assert -1 < wide.low < inner.low < 0.5 < inner.high <= wide.high <= 1, "rates differ by no more than 1"
    assert found.to_json()["narrow"] == inner.to_json()
