"""Recordings of upstream are reproduced; what its users know works under its name, or says what replaces it."""

import itertools
import json
import random

import numpy as np
import pytest
from small_shop import SmallShop, play

from benchmarks import parity_webshop, parity_webshop_catalog
from skillc_gym.envs.webshop.catalog import generate_rows
from skillc_gym.envs.webshop.catalog.image_features import ImageFeatures
from skillc_gym.envs.webshop.env import WebShopEnv
from skillc_gym.errors import CatalogError, ConfigError, MissingDataError
from skillc_gym.wrappers import SkillCurriculum, SkillInjection

CASES = {
    parity_webshop.compare_colors: 1,
    parity_webshop.compare_fuzzy: 1000,
    parity_webshop.compare_rewards: 1000,
    parity_webshop.compare_goals: 3000,
    parity_webshop.compare_episodes: 2000,
    parity_webshop_catalog.compare_products: 500,
    parity_webshop_catalog.compare_loader: 40,
    parity_webshop_catalog.compare_terms: 2900,
    parity_webshop_catalog.compare_rankings: 300,
    parity_webshop_catalog.compare_special_searches: 7,
}
CHANGED = {"script0", "script4", "script5", "script6", "script16", "script18", "rand12"}
"""Recorded episodes that the fixes change."""


def test_names_that_are_taken(shop):
    env = WebShopEnv(data=shop, human_goals=True, show_attrs=True, limit_goals=-1, filter_goals=None, num_prev_obs=0)
    ours = WebShopEnv(data=shop, goals="human", show_attributes=True)
    assert env.task_ids == ours.task_ids
    assert env.reset(seed=3) == ours.reset(seed=3)
    assert WebShopEnv(data=shop, human_goals=None, session=None, get_image=0).goals.kind == "synthetic"


def test_the_number_of_products(tmp_path):
    assert len(WebShopEnv(data="generated", num_products=30).catalog) == 30
    rows = list(generate_rows(30))
    (tmp_path / "items_shuffle.json").write_text(json.dumps([row.row for row in rows]))
    (tmp_path / "items_ins_v2.json").write_text(json.dumps({row.row["asin"]: row.attributes for row in rows}))
    assert len(WebShopEnv(data=tmp_path, num_products=25).catalog) == 25
    assert len(WebShopEnv(data=str(tmp_path), num_products=None).catalog) == 30


def test_sessions_are_numbers_of_goals(env):
    for options in ({"session": 3}, {"task_id": 3}, {"session": np.int64(3)}):
        assert env.reset(options=options) == env.reset(options={"task_id": "synthetic/3"})
    wrapped = SkillCurriculum(SkillInjection(env, "webshop"), {"task_types": ("shopping",)})
    for options in ({"session": 3}, {"task_id": 3}, {"task_id": "synthetic/3"}):
        assert wrapped.reset(options=options)[1]["task_id"] == "synthetic/3"
    for options in ({"session": "3"}, {"session": True}, {"session": np.arange(2)}, {"session": 1, "task_id": 1}):
        with pytest.raises(ConfigError, match="number of a goal"):
            env.reset(options=options)


def test_methods_of_upstream(env):
    _, info = env.reset(options={"session": 0})
    assert env.get_instruction_text() == f"Instruction: {info['goal']}"
    assert env.get_available_actions() == {"has_search_bar": True, "clickables": ["search"]}
    env.step("search[rug]")
    assert env.get_instruction_text() == f"Instruction:{info['goal']}", "one page of upstream's has a blank there"
    assert (env.get_image().shape, env.get_image().any()) == ((512,), False)


def test_orders_of_goals(shop):
    """verl-agent's order is the unshuffled goals in Python's shuffle of seed 42."""
    ours, theirs = (WebShopEnv(data=shop, goal_order=order).goals.table for order in ("upstream", "verl-agent"))
    places = {seed: list(range(len(ours.product))) for seed in (233, 42)}
    for seed, order in places.items():
        random.Random(seed).shuffle(order)
    unshuffled = np.empty_like(ours.product)
    unshuffled[places[233]] = ours.product
    assert (theirs.product == unshuffled[places[42]]).all()
    assert (ours.product != theirs.product).any()
    assert (ours.prices == theirs.prices).all()


def test_goals_of_a_product_stand_together_and_splits_share_none(shop):
    ours, grouped = (WebShopEnv(data=shop, goal_order=order).goals.table for order in ("upstream", "products"))
    runs = [product for product, _ in itertools.groupby(grouped.product.tolist())]
    assert len(runs) == len(set(runs))
    goals = [sorted(zip(one.product, one.variant, one.price_upper, strict=True)) for one in (ours, grouped)]
    assert goals[0] == goals[1]
    assert grouped.cumulative[-1] == pytest.approx(ours.cumulative[-1])


def test_features_of_pictures(shop, tmp_path):
    path, url = tmp_path / "features.npz", "http://x/1.jpg"
    np.savez(path, urls=np.array([url]), features=np.ones((1, 512), np.float32))
    assert ImageFeatures(path).of(url).sum() == 512
    assert ImageFeatures(path).of("other").sum() == 0
    pictured = SmallShop(makers=(), extra=[{"main_image": url}])
    env = WebShopEnv(data=pictured, image_features=path)
    play(env, "search[thing]", "click[b000000000]")
    assert env.get_image().sum() == 512
    play(env, "search[thing]", "click[b000000000]", "click[description]")
    assert env.get_image().sum() == 0, "that page shows no picture"
    np.savez(tmp_path / "short.npz", urls=np.array([url]), features=np.ones((1, 3), np.float32))
    (tmp_path / "broken.npz").write_bytes(b"PK")
    for error, said, name in (
        (MissingDataError, "image_features=", "none"),
        (CatalogError, "512", "short"),
        (CatalogError, "urls and features", "broken"),
    ):
        with pytest.raises(error, match=said):
            WebShopEnv(data=shop, image_features=tmp_path / f"{name}.npz")


@pytest.mark.parametrize(("compare", "at_least"), CASES.items())
def test_recordings_of_upstream_are_reproduced(compare, at_least, webshop_reference):
    found = compare(webshop_reference)
    assert found.differences == []
    assert found.cases >= at_least


def test_rankings_of_the_real_products_are_reproduced(webshop_reference, webshop_data):
    found = parity_webshop_catalog.compare_real_rankings(webshop_reference, str(webshop_data))
    assert found.differences == []
    assert found.cases == 218


def test_fixes_change_few_episodes_and_each_for_a_reason(webshop_reference):
    found = parity_webshop.compare_episodes(webshop_reference, compat="fixed")
    assert {line.split("_")[0] for line in found.differences} <= CHANGED
    assert found.counts["episodes"] > 20 * len(found.differences)


def test_the_builtin_tagger_agrees_with_the_recorded_one(webshop_reference):
    found = parity_webshop.compare_nouns(webshop_reference)
    assert len(found.differences) <= 0.01 * found.cases
