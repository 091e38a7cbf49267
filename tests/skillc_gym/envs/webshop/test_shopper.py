from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_shop import SmallShop

from skillc_gym.envs.webshop.env import WebShopEnv
from skillc_gym.envs.webshop.experts.shopper import Shopper, choose, parse_instruction, read_item, read_results

SHOP = SmallShop()


def shop_for(env, task_id, steps=15):
    observation, info = env.reset(options={"task_id": task_id})
    shopper = Shopper(info["goal"], steps=steps)
    for _ in range(steps):
        observation, reward, terminated, _, info = env.step(shopper.act(observation, info["available_actions"]))
        assert info["action_valid"]
        if terminated:
            return reward
    return None


def test_instructions_are_read():
    instruction = parse_instruction(
        "Find me non slip women's oxfords with high heel with color: x, and y, and size: 9"
        ", and price lower than 70.00 dollars"
    )
    assert instruction.options == ("x, and y", "9")
    assert instruction.price == 70.0
    assert instruction.features == ("non", "slip", "women's", "oxfords", "high", "heel")
    # A person's sentence names no options.
    instruction = parse_instruction("i'm looking for a red rug: the soft kind")
    assert (instruction.options, instruction.price) == ((), None)
    assert instruction.words == ("red", "rug", "soft")


@given(st.text())
def test_any_instruction_can_be_read(text):
    shopper = Shopper(text)
    assert shopper.act("", ["search[<query>]"]).startswith("search[")


def test_pages_are_read_as_they_are_written():
    env = WebShopEnv(data=SHOP)
    env.reset(seed=0)
    observation, *_, info = env.step("search[rug]")
    listed = read_results(observation, info["available_actions"])
    assert [entry.asin for entry in listed] == [f"b00000000{place}" for place in range(10)]
    assert (listed[0].title, listed[0].price) == ("Alderon Soft Rug for Home", 12.5)
    observation, *_, info = env.step("click[b000000001]")
    item = read_item(observation, info["available_actions"])
    assert item.groups == tuple(SHOP.product(1).options.items())
    assert (item.title, item.price) == ("Brivane Soft Rug for Home", 15.5)
    assert choose(parse_instruction("Find me rugs with color: red, and size: small"), item) == (["red", "small"], 2.0)


@pytest.mark.parametrize(("goals", "steps"), [("synthetic", 15), ("human", 15), ("synthetic", 8)])
def test_the_shopper_buys_in_time_with_legal_actions(goals, steps):
    env = WebShopEnv(data=SHOP, goals=goals)
    assert all(shop_for(env, task_id, steps) is not None for task_id in env.task_ids[::6])


def test_a_careless_customer_buys_without_choosing():
    env = WebShopEnv(data=SHOP)
    for task_id in env.task_ids:
        observation, info = env.reset(options={"task_id": task_id})
        shopper, thoughts = Shopper(info["goal"], skip_options=True), []
        bought = False
        while not bought:
            observation, _, bought, _, info = env.step(shopper.act(observation, info["available_actions"]))
            thoughts.append(shopper.thought)
        assert info["selected_options"] == []
        assert [thoughts[0], thoughts[-1]] == ["search", "buy"]
        assert not any(thought.startswith("choose") for thought in thoughts)
