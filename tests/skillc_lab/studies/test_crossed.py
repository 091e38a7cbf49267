"""The variance of a mean over seeds and tasks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc_lab.studies.crossed import variance_of_mean

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
