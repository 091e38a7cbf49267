"""The environment: episodes, modes, contract, and that any string is an answer; and the rule-based customer."""

import json
import subprocess
from typing import ClassVar

import gymnasium
import pytest
from gymnasium.error import ResetNeeded
from hypothesis import given
from hypothesis import strategies as st
from small_shop import RUG, SmallShop, play, process

import skillc_gym
from skillc_gym.envs.webshop.env import OBSERVATION_MODES, TASK_TYPE, WebShopEnv
from skillc_gym.envs.webshop.experts.shopper import Shopper, choose, parse_instruction, read_item, read_results
from skillc_gym.envs.webshop.shop.compat import REPLACED
from skillc_gym.errors import ConfigError, UnknownNameError
from skillc_gym.testing import TextEnvContract
from skillc_gym.wrappers import DiscreteCommands

SHOP = SmallShop()
GENERATED = {"data": "generated", "num_products": 30}
BEYOND = f"verl-agent:{2**32}:2"


def make_env(**options):
    return gymnasium.make(skillc_gym.WEBSHOP_ID, data=SHOP, disable_env_checker=True, **options)


class TestText(TextEnvContract):
    options: ClassVar = {}

    def make_env(self):
        return make_env(**self.options)


class TestRich(TestText):
    options: ClassVar = {"observation_mode": "text_rich", "goals": "human", "render_mode": "ansi"}


class TestHtml(TestText):
    options: ClassVar = {"observation_mode": "html", "render_mode": "html", "show_attributes": True}


class TestUrl(TestText):
    options: ClassVar = {"observation_mode": "url", "compat": "upstream"}


def test_the_first_page(env):
    observation, info = env.reset(options={"task_id": "synthetic/0"})
    assert observation == f"WebShop [SEP] Instruction: [SEP] {info['goal']} [SEP] Search"
    assert info["available_actions"] == info["admissible_commands"] == ["search[<query>]"]
    assert (info["page"], info["task_type"], info["noun_tagger"]) == ("index", TASK_TYPE, "builtin-1")


def test_a_purchase_ends_and_scores(env):
    for task_id in env.task_ids[:20]:
        goal = env.goals.goal(env.goals.index(task_id))
        clicks = [f"click[{label}]" for label in (goal.asin.lower(), *dict(goal.options).values(), "buy now")]
        way = (f"search[{goal.name}]", *clicks)
        observation, reward, terminated, truncated, info = play(env, *way, options={"task_id": task_id})
        assert (terminated, truncated) == (True, False)
        assert reward == info["task_score"] == env.best_score(task_id)
        assert info["won"] == float(reward == 1.0)
        assert f"{reward} [SEP] Reward Details" in observation
        assert {"r_type", "r_att", "r_price", "w_att", "w_price", "title_score"} <= set(info)
        assert info["available_actions"] == []
        assert json.loads(json.dumps(info)) == info


def test_best_scores_find_tasks_that_cannot_be_won(env):
    lost = {task_id for task_id in env.task_ids if env.best_score(task_id) < 1}
    goals = {task_id: env.goals.goal(env.goals.index(task_id)).instruction for task_id in env.task_ids}
    assert lost == {task_id for task_id, goal in goals.items() if "titanium" in goal} != set()


def test_after_a_purchase_nothing_changes_but_upstream_goes_on(env):
    shown, score, *_ = play(env, *RUG, "click[buy now]")
    *again, _, info = env.step("search[rug]")
    assert (again, info["action_valid"], info["task_score"]) == ([shown, 0.0, True], False, score)
    env = WebShopEnv(data=SHOP, compat="upstream")
    play(env, *RUG, "click[buy now]")
    _, reward, terminated, _, info = env.step("search[rug]")
    assert (reward, terminated, info["page"], info["task_score"]) == (0.0, False, "results", 0.0)


@pytest.mark.parametrize("mode", OBSERVATION_MODES)
def test_modes_show_the_same_pages_and_long_actions_are_searched_as_upstream_searches_them(mode):
    action = f"search[{'alderon rug ' * 8_000}]"
    for compat, page in (("fixed", "index"), ("upstream", "results")):
        env = WebShopEnv(data=SHOP, compat=compat, observation_mode=mode)
        observation, *_, info = play(env, action)
        assert info["page"] == page
        assert (info["action_valid"], action in env.action_space) == (page == "results",) * 2
        assert observation in env.observation_space
    assert play(env, RUG[0])[4]["clickables"] == info["clickables"]
    shown, *_, info = play(env, *RUG, "click[features]")
    assert info == play(WebShopEnv(data=SHOP, compat="upstream"), *RUG, "click[features]")[4]
    assert shown == env.url if mode == "url" else "Machine wash: easy." in shown
    assert play(env, f"search[{'😀' * (1 << 18)}]")[4]["action_valid"] is False


@pytest.mark.parametrize(
    ("error", "said", "options"),
    [
        (UnknownNameError, "'image'", {"observation_mode": "image"}),
        (UnknownNameError, "'old'", {"compat": "old"}),
        (UnknownNameError, "'rgb'", {"render_mode": "rgb"}),
        (UnknownNameError, "human_goals", {"human_goal": True}),
        (UnknownNameError, "expected one of", {"goals": "animal"}),
        *((UnknownNameError, "expected one of", {"split": split}) for split in ("dev", ["train"])),
        *((UnknownNameError, "expected one of", {"goal_order": order}) for order in (None, ["upstream"])),
        *((UnknownNameError, "verl-agent", {"goal_order": order}) for order in ("verl", "verl-agent:1:0", BEYOND)),
        (ConfigError, "'train' begins at goal 1500", {"split": "train"}),
        (ConfigError, "the split 'train' or 'test'", {"goal_order": "verl-agent:0:8"}),
        *(
            (ConfigError, "seed_prices is a whole number from 0 up, got ", {"seed_prices": seed})
            for seed in (None, 1.5, "1", True, -1)
        ),
        *((ConfigError, f"{name}= is upstream's name; instead, ", {name: 7}) for name in REPLACED),
        (ConfigError, "session= is upstream's", {"session": 0}),
        (ConfigError, "data is 'generated', a folder", {"data": 5}),
        (UnknownNameError, "compat", {"compat": ["fixed"]}),
        (ConfigError, "leave ", {"goals": "human", "human_goals": False}),
        (ConfigError, "nouns of a name", {"noun_tagger": str.lower}),
        (ConfigError, "leave ", {"show_attributes": True, "show_attrs": False}),
        (ConfigError, "leave ", {"data": {"products": "no.json", "num_products": 50}, "num_products": 100}),
        *((ConfigError, "leave ", {"seed_prices": 1, "goal_order": f"verl-agent:7{more}"}) for more in ("", ":2")),
        (ConfigError, "make-catalog --num-products", {"num_products": 3}),
        (ConfigError, "needs data='generated'", {"generator": {"size": 3}}),
        (ConfigError, "generator= is a dictionary", {"generator": "x"}),
        (UnknownNameError, "'size'", {**GENERATED, "generator": {"sice": 5}}),
        (UnknownNameError, "num_products", {**GENERATED, "generator": {"num_products": 5}}),
        (ConfigError, "leave one out", {**GENERATED, "generator": {"size": 5}}),
        (ConfigError, "whole number", {**GENERATED, "generator": {"seed": "x"}}),
    ],
)
def test_wrong_arguments_are_named(error, said, options):
    with pytest.raises(error, match=said):
        WebShopEnv(**{"data": SHOP, **options})


def test_a_tagger_of_yours_is_named_in_results_and_copies_share_the_shop():
    env = WebShopEnv(data=SHOP, noun_tagger=lambda name: [])
    *_, info = play(env, *RUG, "click[buy now]")
    assert ("lambda" in info["noun_tagger"], info["title_score"]) == (True, 0.2)
    twin = env.copy()
    assert (twin.catalog, twin.tagger) == (env.catalog, env.tagger)
    assert twin.get_available_actions() == WebShopEnv(data=SHOP).get_available_actions()
    with pytest.raises(ResetNeeded):
        twin.get_instruction_text()


def test_an_option_that_looks_like_a_pattern_is_one_command():
    shop = SmallShop(makers=(), extra=[{"title": "Rug", "options": {"size": ("<small>", "large")}}])
    commands = [
        "search[rug]",
        "search[<small> rug]",
        "click[b000000000]",
        "click[<small>]",
        "click[large]",
        "click[red]",
    ]
    env = DiscreteCommands(WebShopEnv(data=shop), commands)
    assert env.reset(seed=0)[1]["action_mask"].tolist() == [1, 1, 0, 0, 0, 0]
    env.step(0)
    assert env.step(2)[-1]["action_mask"].tolist() == [0, 0, 0, 1, 1, 0]
    assert env.step(3)[-1]["selected_options"] == ["size: <small>"]


def test_groups_that_are_written_alike_without_marks_stay_two():
    groups = {"[SEP]": ("one", "two"), "(SEP)": ("three",)}
    env = WebShopEnv(data=SmallShop(makers=(), extra=[{"title": "Rug", "options": groups}]), escape_markup=True)
    *_, info = play(env, "search[rug]", "click[b000000000]")
    assert {"one", "two", "three"} <= {*info["clickables"]}


def test_other_processes_play_the_same():
    code = (
        "from small_shop import SmallShop, play; from skillc_gym.envs.webshop.env import WebShopEnv\n"
        "env = WebShopEnv(data=SmallShop())\n"
        "print(play(env, 'search[red rug]', 'click[b000000001]', seed=5), env.step('click[red]'))\n"
        "print(env.step('click[buy now]'), [env.reset() for _ in range(20)])"
    )
    assert len({subprocess.check_output(**process(code, PYTHONHASHSEED=seed)) for seed in "12"}) == 1


# The rule-based customer --------------------------------------------------------------------------------------------


def shop_for(env, task_id, **options):
    """Plays an episode; returns whether something was bought, the last info and the thoughts."""
    observation, info = env.reset(options={"task_id": task_id})
    shopper, thoughts, bought = Shopper(info["goal"], **options), [], False
    while not bought and len(thoughts) < options.get("steps", 15):
        observation, _, bought, _, info = env.step(shopper.act(observation, info["available_actions"]))
        assert info["action_valid"]
        thoughts.append(shopper.thought)
    return bought, info, thoughts


def test_instructions_are_read():
    instruction = parse_instruction(
        "Find me non slip women's oxfords with high heel with color: x, and y, and size: 9"
        ", and price lower than 1,070.00 dollars"
    )
    assert instruction.options == ("x, and y", "9")
    assert instruction.price == 1070.0
    assert instruction.features == ("non", "slip", "women's", "oxfords", "high", "heel")
    # A person's sentence names no options.
    instruction = parse_instruction("i'm looking for a red rug: the soft kind")
    assert (instruction.options, instruction.price) == ((), None)
    assert instruction.words == ("red", "rug", "soft")


@given(st.text())
def test_any_instruction_can_be_read(text):
    shopper = Shopper(text)
    assert shopper.act("", ["search[<query>]"]).startswith("search[")


def test_pages_are_read_as_they_are_written(env, shop):
    observation, *_, info = play(env, "search[rug]")
    listed = read_results(observation, info["available_actions"])
    assert [entry.asin for entry in listed] == [f"b00000000{place}" for place in range(10)]
    assert (listed[0].title, listed[0].price) == ("Alderon Soft Rug for Home", 12.5)
    observation, *_, info = env.step("click[b000000001]")
    item = read_item(observation, info["available_actions"])
    assert item.groups == tuple(shop.product(1).options.items())
    assert (item.title, item.price) == ("Brivane Soft Rug for Home", 15.5)
    assert choose(parse_instruction("Find me rugs with color: red, and size: small"), item) == (["red", "small"], 2.0)


@pytest.mark.parametrize(("goals", "steps"), [("synthetic", 15), ("human", 15), ("synthetic", 8)])
def test_the_shopper_buys_in_time_with_legal_actions(shop, goals, steps):
    env = WebShopEnv(data=shop, goals=goals)
    assert all(shop_for(env, task_id, steps=steps)[0] for task_id in env.task_ids[::6])


def test_a_careless_customer_buys_without_choosing(env):
    for task_id in env.task_ids:
        bought, info, thoughts = shop_for(env, task_id, skip_options=True)
        assert (bought, info["selected_options"]) == (True, [])
        assert (thoughts[0], thoughts[-1]) == ("search", "buy")
        assert not any(thought.startswith("choose") for thought in thoughts)
