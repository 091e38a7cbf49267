"""Means over seeds, Student's t, and the variance of a mean over seeds and tasks."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc_gym.errors import ConfigError
from trainers.stats import Interval, mean_over_seeds, t_p_value, t_quantile, variance_of_mean

TABLES = st.integers(2, 5).flatmap(
    lambda tasks: st.lists(st.lists(st.integers(-1, 1), min_size=tasks, max_size=tasks), min_size=2, max_size=4)
)


def test_it_is_the_sum_of_both_sources():
    table = np.array([[0.0, 1.0, 2.0, 1.0], [3.0, 4.0, 5.0, 4.0], [1.0, 2.0, 3.0, 2.0]])
    found, freedom = variance_of_mean(table.tolist())
    parts = [table.mean(1).var(ddof=1) / 3, table.mean(0).var(ddof=1) / 4]
    assert found == pytest.approx(sum(parts))
    assert freedom == int(found**2 / (parts[0] ** 2 / 2 + parts[1] ** 2 / 3))


def test_seeds_count_at_least_as_much_as_single_episodes():
    """Rows with one mean and nothing in common: their episodes vary, and so would their means in another draw."""
    table = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 1]], dtype=float)
    left = table - table.mean(1)[:, None] - table.mean(0) + table.mean()
    noise = (left**2).sum() / 6
    expected = noise / 4 / 3 + table.mean(0).var(ddof=1) / 4
    assert variance_of_mean(table.tolist())[0] == pytest.approx(expected)


@given(TABLES, st.randoms(use_true_random=False))
def test_order_and_sign_do_not_matter(table, shuffled):
    found, freedom = variance_of_mean(table)
    order = list(range(len(table[0])))
    shuffled.shuffle(order)
    turned = [[-row[i] for i in order] for row in reversed(table)]
    other, other_freedom = variance_of_mean(turned)
    assert other == pytest.approx(found)
    assert abs(freedom - other_freedom) <= 1
    assert variance_of_mean([[3 * value for value in row] for row in table])[0] == pytest.approx(9 * found)


def test_one_row_or_one_column_leaves_the_other_source():
    assert variance_of_mean([[0.0, 1.0, 1.0]]) == (pytest.approx(1 / 9), 2)
    assert variance_of_mean([[0.0], [1.0]]) == (pytest.approx(1 / 4), 1)
    assert variance_of_mean([[1.0]]) == (0.0, 1)


@pytest.mark.parametrize(
    ("df", "value"), [(1, 12.7062), (2, 4.3027), (3, 3.1824), (4, 2.7764), (10, 2.2281), (120, 1.9799)]
)
def test_t_quantiles(df: int, value: float) -> None:
    assert t_quantile(0.975, df) == pytest.approx(value, abs=1e-4)


def test_mean_over_seeds() -> None:
    estimate = mean_over_seeds([0.6, 0.7, 0.8])
    half = 4.30265 * 0.1 / math.sqrt(3)
    assert estimate.mean == pytest.approx(0.7)
    assert estimate.interval == Interval(pytest.approx(0.7 - half, abs=1e-5), pytest.approx(0.7 + half, abs=1e-5))
    assert mean_over_seeds([0.6]).interval is None


def test_of_nothing_there_is_no_mean_and_no_quantile():
    for call in (lambda: mean_over_seeds([]), lambda: t_quantile(0.975, 0), lambda: t_p_value(-1.0, 3)):
        with pytest.raises(ConfigError):
            call()


@pytest.mark.parametrize("df", [1, 2, 7])
def test_p_values_invert_the_quantile(df):
    assert t_p_value(t_quantile(0.975, df), df) == pytest.approx(0.05, abs=1e-9)
