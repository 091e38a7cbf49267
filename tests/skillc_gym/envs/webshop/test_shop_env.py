"""The environment: episodes, modes, contract, and that any string is an answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import gymnasium
import pytest
from gymnasium.error import ResetNeeded
from small_shop import RUG, SmallShop, play

import skillc_gym
from skillc_gym.envs.webshop.env import OBSERVATION_MODES, TASK_TYPE, WebShopEnv
from skillc_gym.errors import ConfigError, UnknownNameError
from skillc_gym.testing import TextEnvContract

SHOP = SmallShop()


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


def buy_right(env, task_id):
    goal = env.unwrapped.goals.goal(env.unwrapped.goals.index(task_id))
    clicks = [f"click[{value}]" for _, value in goal.options]
    way = (f"search[{goal.name}]", f"click[{goal.asin.lower()}]", *clicks, "click[buy now]")
    return play(env, *way, options={"task_id": task_id})


def test_the_first_page(env):
    observation, info = env.reset(options={"task_id": "synthetic/0"})
    assert observation == f"WebShop [SEP] Instruction: [SEP] {info['goal']} [SEP] Search"
    assert info["available_actions"] == info["admissible_commands"] == ["search[<query>]"]
    assert (info["has_search_bar"], info["clickables"], info["page"]) == (True, ["search"], "index")
    assert (info["task_id"], info["task_type"], info["noun_tagger"]) == ("synthetic/0", TASK_TYPE, "builtin-1")


def test_a_purchase_ends_and_scores(env):
    for task_id in env.task_ids[:20]:
        observation, reward, terminated, truncated, info = buy_right(env, task_id)
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
    bought = play(env, *RUG, "click[buy now]")
    again = env.step("search[rug]")
    assert (again[0], again[1], again[2]) == (bought[0], 0.0, True)
    assert (again[4]["action_valid"], again[4]["task_score"]) == (False, bought[1])
    env = WebShopEnv(data=SHOP, compat="upstream")
    play(env, *RUG, "click[buy now]")
    _, reward, terminated, _, info = env.step("search[rug]")
    assert (reward, terminated, info["page"], info["task_score"]) == (0.0, False, "results", 0.0)


@pytest.mark.parametrize("mode", OBSERVATION_MODES)
def test_long_actions_are_searched_as_upstream_searches_them(mode):
    action = f"search[{'alderon rug ' * 8_000}]"
    for compat, page in (("fixed", "index"), ("upstream", "results")):
        env = WebShopEnv(data=SHOP, compat=compat, observation_mode=mode)
        found = play(env, action)
        assert (found[4]["page"], found[4]["action_valid"]) == (page, page == "results")
        assert (action in env.action_space) == (page == "results")
        assert found[0] in env.observation_space
    assert play(env, RUG[0])[4]["clickables"] == found[4]["clickables"]
    assert play(env, f"search[{'😀' * (1 << 18)}]")[4]["action_valid"] is False


@pytest.mark.parametrize("mode", OBSERVATION_MODES)
def test_modes_show_the_same_pages(mode, env):
    other = WebShopEnv(data=SHOP, observation_mode=mode)
    seen, expected = play(other, *RUG, "click[features]"), play(env, *RUG, "click[features]")
    assert seen[4] == expected[4]
    assert "features" in other.url.lower()
    assert seen[0] == other.url if mode == "url" else "Machine wash: easy." in seen[0]


@pytest.mark.parametrize(
    ("error", "said", "options"),
    [
        (UnknownNameError, "'image'", {"observation_mode": "image"}),
        (UnknownNameError, "'old'", {"compat": "old"}),
        (UnknownNameError, "'rgb'", {"render_mode": "rgb"}),
        (ConfigError, "needs data='generated'", {"generator": {"size": 3}}),
        (ConfigError, "generator= is a dictionary", {"generator": "x"}),
    ],
)
def test_wrong_arguments_are_named(error, said, options):
    with pytest.raises(error, match=said):
        WebShopEnv(data=SHOP, **options)


def test_a_tagger_of_yours_is_named_in_results():
    *_, info = play(WebShopEnv(data=SHOP, noun_tagger=lambda name: []), *RUG, "click[buy now]")
    assert "lambda" in info["noun_tagger"]
    assert info["title_score"] == 0.2


def test_copies_share_the_shop_but_not_the_customer(env):
    play(env, *RUG)
    twin = env.copy()
    with pytest.raises(ResetNeeded):
        twin.step("search[rug]")
    play(twin, "search[lamp]")
    assert env.step("click[features]")[4]["page"] == "sub"
    assert twin.catalog is env.catalog


def test_other_processes_play_the_same():
    code = (
        "from small_shop import SmallShop; from skillc_gym.envs.webshop.env import WebShopEnv\n"
        "env = WebShopEnv(data=SmallShop()); seen = [env.reset(seed=5)]\n"
        "for action in ['search[red rug]', 'click[b000000001]', 'click[red]', 'click[buy now]']:\n"
        "    seen.append(env.step(action))\n"
        "seen += [env.reset() for _ in range(20)]\n"
        "print(repr(seen))"
    )
    program = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n{code}"]
    seen = set()
    for seed in ("1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": seed}
        seen.add(subprocess.run(program, env=env, capture_output=True, text=True, check=True).stdout)
    assert len(seen) == 1
