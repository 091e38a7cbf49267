"""Statistics: published values, symmetries, coverage, several differences at once."""

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skillc_gym.errors import ConfigError
from trainers import stats
from trainers.stats.intervals import t_p_value

counts = st.tuples(*[st.integers(0, 60)] * 4).filter(lambda c: sum(c) > 0)


def test_wilson_agrees_with_published_values() -> None:
    # Newcombe 1998, Statistics in Medicine 17, 857-872, method 3.
    for successes, n, ends in [(81, 263, (0.2553, 0.3662)), (15, 148, (0.0624, 0.1605)), (0, 20, (0.0, 0.1611))]:
        assert tuple(stats.wilson(successes, n)) == pytest.approx(ends, abs=5e-5)


@given(st.integers(1, 500), st.data())
def test_wilson_stays_within_bounds_and_mirrors(n: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(0, n))
    interval, mirrored = stats.wilson(k, n), stats.wilson(n - k, n)
    assert 0.0 <= interval.low <= k / n <= interval.high <= 1.0
    assert interval.low == pytest.approx(1 - mirrored.high, abs=1e-12)


def test_the_paired_interval_agrees_with_published_values_and_narrows_by_agreement_but_never_to_a_point() -> None:
    # Newcombe 1998, Statistics in Medicine 17, 2635-2650, method 10.
    assert tuple(stats.paired_difference(36, 12, 2, 0)) == pytest.approx((0.0569, 0.3404), abs=5e-5)
    agreeing, mixed = stats.paired_difference(20, 0, 0, 20), stats.paired_difference(10, 10, 10, 10)
    assert 0.0 < agreeing.high - agreeing.low < mixed.high - mixed.low


@given(counts)
def test_the_paired_interval_holds_the_difference_and_is_antisymmetric(c: tuple[int, int, int, int]) -> None:
    both, first, second, neither = c
    interval, swapped = stats.paired_difference(*c), stats.paired_difference(both, second, first, neither)
    assert -1.0 <= interval.low <= (first - second) / sum(c) + 1e-12
    assert (first - second) / sum(c) - 1e-12 <= interval.high <= 1.0
    assert interval.low == pytest.approx(-swapped.high, abs=1e-12)


@pytest.mark.parametrize("shared", [0.0, 0.6])
def test_the_paired_interval_covers_what_it_promises(shared: float) -> None:
    rng = np.random.default_rng(5)
    p, q, n, trials = 0.7, 0.4, 40, 1500
    luck = rng.random((trials, n, 2))
    luck[..., 1] = np.where(rng.random((trials, n)) < shared, luck[..., 0], luck[..., 1])
    first, second = luck[..., 0] < p, luck[..., 1] < q
    hits = 0
    for a, b in zip(first, second, strict=True):
        interval = stats.paired_difference(*(int(cell.sum()) for cell in (a & b, a & ~b, ~a & b, ~a & ~b)))
        hits += interval.low <= p - q <= interval.high
    assert 0.93 <= hits / trials <= 0.985


def test_the_bootstrap_is_fixed_by_its_seed_and_near_the_normal_interval() -> None:
    values = np.random.default_rng(0).normal(0.3, 0.2, 100).tolist()
    interval = stats.bootstrap_mean(values, seed=1, resamples=3000)
    assert interval == stats.bootstrap_mean(values, seed=1, resamples=3000)
    assert interval != stats.bootstrap_mean(values, seed=2, resamples=3000)
    half = 1.96 * np.std(values) / 10
    assert tuple(interval) == pytest.approx((np.mean(values) - half, np.mean(values) + half), abs=0.006)


BAD = [(stats.wilson, 3, 2), (stats.wilson, 0, 0), (stats.wilson, 1, 2, 1.0), (stats.paired_difference, 0, 0, 0, 0)]
BAD += [(stats.paired_difference, 1, -1, 0, 0), (stats.mean_over_seeds, []), (stats.t_quantile, 0.975, 0)]
BAD += [(t_p_value, -1.0, 3), (stats.detectable_difference, 0, 0.2), (partial(stats.bootstrap_mean, seed=0), [])]


@pytest.mark.parametrize("call", BAD)
def test_bad_input_is_refused(call: tuple[Any, ...]) -> None:
    function, *arguments = call
    with pytest.raises(ConfigError):
        function(*arguments)


ROWS = st.integers(2, 5).map(lambda tasks: st.lists(st.integers(-1, 1), min_size=tasks, max_size=tasks))
TABLES = ROWS.flatmap(lambda rows: st.lists(rows, min_size=2, max_size=4))


@given(TABLES)
@example([[0, 1, 2, 1], [3, 4, 5, 4], [1, 2, 3, 2]])  # rows far apart
@example([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 1]])  # rows with one mean: their episodes vary, so would their means
def test_noise_is_the_sum_of_both_sources_and_seeds_count_at_least_as_much_as_single_episodes(rows):
    table, (seeds, tasks) = np.array(rows, dtype=float), np.shape(rows)
    left = table - table.mean(1)[:, None] - table.mean(0) + table.mean()
    noise = (left**2).sum() / (seeds - 1) / (tasks - 1)
    parts = [max(table.mean(1).var(ddof=1), noise / tasks) / seeds, table.mean(0).var(ddof=1) / tasks]
    found, freedom = stats.variance_of_mean(table.tolist())
    assert found == pytest.approx(sum(parts))
    if found > 1e-9:
        exact = found**2 / (parts[0] ** 2 / (seeds - 1) + parts[1] ** 2 / (tasks - 1))
        assert exact - 1 - 1e-6 <= freedom <= max(exact, 1) + 1e-6


@given(TABLES, st.randoms(use_true_random=False))
def test_order_and_sign_do_not_matter(table, shuffled):
    found, freedom = stats.variance_of_mean(table)
    order = list(range(len(table[0])))
    shuffled.shuffle(order)
    turned = [[-row[i] for i in order] for row in reversed(table)]
    other, other_freedom = stats.variance_of_mean(turned)
    assert other == pytest.approx(found)
    assert abs(freedom - other_freedom) <= 1
    assert stats.variance_of_mean([[3 * value for value in row] for row in table])[0] == pytest.approx(9 * found)


def test_one_row_or_one_column_leaves_the_other_source():
    assert stats.variance_of_mean([[0.0, 1.0, 1.0]]) == (pytest.approx(1 / 9), 2)
    assert stats.variance_of_mean([[0.0], [1.0]]) == (pytest.approx(1 / 4), 1)
    assert stats.variance_of_mean([[1.0]]) == (0.0, 1)


def test_figures_that_differ_by_rounding_did_not_vary():
    rounded = stats.mean_over_seeds_and_tasks([[1.0, 1.0 - 2e-16], [1.0 - 2e-16, 1.0]])
    assert rounded.interval.low == pytest.approx(stats.mean_over_seeds_and_tasks([[1.0, 1.0]] * 2).interval.low)


@pytest.mark.parametrize(
    ("df", "value"), [(1, 12.7062), (2, 4.3027), (3, 3.1824), (4, 2.7764), (10, 2.2281), (120, 1.9799)]
)
def test_t_quantiles_and_p_values_that_invert_them(df: int, value: float) -> None:
    assert stats.t_quantile(0.975, df) == pytest.approx(value, abs=1e-4)
    assert t_p_value(stats.t_quantile(0.975, df), df) == pytest.approx(0.05, abs=1e-9)


def test_mean_over_seeds() -> None:
    estimate = stats.mean_over_seeds([0.6, 0.7, 0.8])
    half = 4.30265 * 0.1 / math.sqrt(3)
    assert (estimate.mean, *estimate.interval) == pytest.approx((0.7, 0.7 - half, 0.7 + half), abs=1e-5)
    assert stats.mean_over_seeds([0.6]).interval is None


@given(st.dictionaries(st.text(max_size=3), st.floats(0, 1), max_size=6))
def test_holm_steps_down_never_lowers_a_p_value_and_keeps_their_order(p_values):
    assert stats.holm({"a": 0.01, "b": 0.04, "c": 0.03}) == pytest.approx({"a": 0.03, "b": 0.06, "c": 0.06})
    assert stats.holm({}) == {}
    adjusted = stats.holm(p_values)
    names = sorted(p_values, key=lambda name: p_values[name])
    assert all(p_values[name] <= adjusted[name] <= 1 for name in p_values)
    assert [adjusted[name] for name in names] == sorted(adjusted.values())


def test_a_difference_has_intervals_of_both_levels():
    found = stats.mean_difference([([1.0, 0.0, 1.0], [0.0, 0.0, 1.0]), ([1.0, 1.0, 1.0], [0.0, 0.0, 1.0])])
    assert found.mean == pytest.approx(0.5)
    wide, inner = found.interval, found.interval_90
    assert -1 < wide.low < inner.low < 0.5 < inner.high <= wide.high <= 1, "rates differ by no more than 1"
    assert found.to_json()["narrow"] == inner.to_json()


def test_what_never_varied_is_as_noisy_as_one_episode_that_differs() -> None:
    same, always = ([([value] * 20, [0.0] * 20)] * 5 for value in (0.0, 1.0))
    assert stats.mean_difference(same).equivalence_p() < 0.05 < stats.mean_difference(same).p_value
    assert stats.mean_difference(always).p_value < 0.05
    assert stats.mean_difference(same).error == pytest.approx(2**0.5 / 100)
    level = stats.mean_over_seeds_and_tasks([[0.0] * 20] * 5).interval
    assert level.high == -level.low > 0.01, "five times nothing of twenty is no proof of never"
    assert stats.mean_difference(same[:2]).equivalence_p(margin=0.01) > 0.05, "forty episodes cannot tell a point"


@given(st.integers(1, 1_000), st.floats(0, 1))
def test_the_detectable_difference_agrees_with_the_formula_and_shrinks_with_more_tasks(n, disagreeing) -> None:
    # (1.95996 sqrt(0.2) + 0.84162 sqrt(0.2 - 0.01))^2 = 154.6 * 0.1^2
    assert stats.detectable_difference(155, 0.2) == pytest.approx(0.1, abs=5e-4)
    assert 0 < stats.detectable_difference(2 * n, disagreeing) <= stats.detectable_difference(n, disagreeing) <= 1


def test_signs_agree_with_counting_by_hand() -> None:
    # Of the eight changes of signs of (3, 2, -1), those that reach 4 in size are the differences themselves, +3 +2 +1,
    # and the mirror images of both.
    assert stats.sign_flip_p([3.0, 2.0, -1.0]) == 4 / 8
    assert stats.sign_flip_p([0.1] * 10) == 2 / 2**10
    assert stats.sign_flip_p([0.0] * 4) == 1.0


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=9))
def test_signs_know_no_order_and_no_direction(values: list[float]) -> None:
    found = stats.sign_flip_p(values)
    assert 2 / 2 ** len(values) <= found <= 1
    assert stats.sign_flip_p(sorted(values)) == stats.sign_flip_p([-value for value in values]) == found


def test_signs_hold_their_level_where_one_run_in_five_takes_off() -> None:
    rng = np.random.default_rng(0)
    pairs = rng.choice([0.1, 0.7], (500, 2, 8), p=[0.8, 0.2])
    p_values = [stats.sign_flip_p(first - second) for first, second in pairs]
    assert np.mean(np.array(p_values) < 0.05) < 0.05


def test_changes_of_many_signs_are_drawn() -> None:
    values = [0.1, 0.2, -0.15, 0.05] * 5
    # A seed without a difference changes nothing but the way of counting.
    assert stats.sign_flip_p([*values, 0.0]) == pytest.approx(stats.sign_flip_p(values), abs=0.005)
    assert 0 < stats.sign_flip_p([0.1] * 25) < 1e-4
