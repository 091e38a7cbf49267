from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_shop import SmallShop, make

from skillc_gym.envs.webshop.goals.goals import NO_LIMIT, combination
from skillc_gym.envs.webshop.goals.tables import Facts, draw_limit, open_goals, synthetic_table
from skillc_gym.errors import ConfigError, MissingDataError, UnknownNameError

MANY = SmallShop(makers=[f"Maker{number}" for number in range(100)])


def test_every_combination_of_options_is_a_goal(shop):
    goals = open_goals(shop)
    assert len(goals) == sum(product.combinations for product in shop.products)
    texts = {goals.goal(index).instruction for index in goals.range}
    assert any(
        "Find me machine wash area rugs with color: red, and size: small, and price lower than" in t for t in texts
    )
    assert any(t.startswith("Find me machine wash area rugs, and price") for t in texts)


def test_human_goals_keep_their_words(shop):
    goal = open_goals(shop, kind="human").goal(0)
    assert goal.instruction.startswith("i want a machine wash thing for my home, and price lower than ")
    assert goal.options == ("red",)
    assert goal.weight == 1.0


def test_a_product_without_instruction_or_with_an_empty_group_has_no_goal():
    odd = SmallShop(makers=(), extra=[{"instruction": None}, {"options": {"color": ()}}, {}])
    goals = open_goals(odd)
    assert [goals.goal(index).asin for index in goals.range] == ["B000000002"]


def test_splits_are_disjoint_and_complete():
    parts = [set(open_goals(MANY, split=split).task_ids) for split in ("test", "valid", "train")]
    assert [len(part) for part in parts[:2]] == [500, 1000]
    assert sum(map(len, parts)) == len(set.union(*parts)) == len(open_goals(MANY))


def test_verl_agents_order_has_its_splits():
    parts = [open_goals(MANY, split=split, order="verl-agent").range for split in ("test", "valid", "train")]
    assert parts == [range(500), range(500), range(500, len(open_goals(MANY)))]


def test_a_split_without_goals_says_so(shop):
    with pytest.raises(ConfigError, match="'train' begins at goal 1500"):
        open_goals(shop, split="train")
    with pytest.raises(MissingDataError, match="no synthetic instruction"):
        open_goals(SmallShop(makers=(), extra=[{"instruction": None}]))


@pytest.mark.parametrize("seed", [None, 1.5, "1", True])
def test_the_seed_of_prices_is_a_whole_number(shop, seed):
    with pytest.raises(ConfigError, match="seed_prices is a whole number, got "):
        open_goals(shop, seed=seed)
    assert open_goals(shop, seed=np.int64(3)) is open_goals(shop, seed=3)


@pytest.mark.parametrize(
    "named",
    [{"split": "dev"}, {"kind": "animal"}, {"split": ["train"]}, {"order": None}, {"order": ["upstream"]}],
)
def test_unknown_names_are_refused(shop, named):
    with pytest.raises(UnknownNameError, match="expected one of"):
        open_goals(shop, **named)


@pytest.mark.parametrize(
    "task_id", ["synthetic/-1", "synthetic/99999", "human/0", "synthetic/01", "synthetic/x", "", "synthetic/²"]
)
def test_unknown_task_ids_are_refused(shop, task_id):
    with pytest.raises(UnknownNameError, match="task id"):
        open_goals(shop).index(task_id)


@given(st.floats(0, 2000), st.integers(0, 2**32))
def test_limits_are_two_to_four_tens_above_the_price(price, seed):
    limit = draw_limit(price, random.Random(seed))
    if price < 980:
        assert limit % 10 == 0
        assert price + 1e-9 < limit <= min(990, price + 40 + 1e-9)
    else:
        assert limit == NO_LIMIT


def test_prices_are_drawn_between_both_ends():
    pricing = [(), (5.0,), *[(9.0, 5.0)] * 100]
    shop = SmallShop(makers=(), extra=[{"pricing": one} for one in pricing])
    prices = Facts(shop).prices(random.Random(0)).tolist()
    assert prices[:2] == [100.0, 5.0]
    assert all(5.0 <= price <= 9.0 for price in prices[2:])
    assert len(set(prices[2:])) == 100


def test_the_seed_moves_prices_but_not_the_order():
    one, other = synthetic_table(Facts(MANY), seed=0), synthetic_table(Facts(MANY), seed=1)
    assert (one.product == other.product).all()
    assert (one.variant == other.variant).all()
    assert (one.prices != other.prices).any()
    assert (one.price_upper != other.price_upper).any()


@given(st.dictionaries(st.sampled_from("abc"), st.lists(st.sampled_from("xyz"), min_size=1, max_size=3)), st.data())
def test_combinations_run_like_nested_loops(options, data):
    names = sorted(options)
    expected = list(itertools.product(*(options[name] for name in names)))
    assert make(0, options=options).combinations == len(expected)
    number = data.draw(st.integers(0, len(expected) - 1))
    assert combination(options, number) == tuple(zip(names, expected[number], strict=True))


def test_draws_follow_the_weights_and_upstreams_are_one_place_late(shop):
    goals = open_goals(shop)
    drawn = np.bincount([goals.draw(np.random.default_rng(seed)) for seed in range(3000)], minlength=len(goals))
    weights = goals.table.weight / goals.table.weight.sum()
    assert abs(drawn / 3000 - weights).max() < 0.02
    late = [goals.draw(np.random.default_rng(seed), skewed=True) for seed in range(3000)]
    assert 0 not in late
    assert [min(goals.draw(np.random.default_rng(seed)) + 1, len(goals) - 1) for seed in range(3000)] == late
