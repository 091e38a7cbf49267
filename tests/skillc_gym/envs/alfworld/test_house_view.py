from __future__ import annotations

import re

import gymnasium
import pytest

from skillc_gym.envs.alfworld.experts.explorer import parse_goal
from skillc_gym.envs.alfworld.experts.planner import shortest_plan

GAMES = {"data": "generated", "task_types": "heat", "generator": {"seed": 3, "games_per_type": 2, "size": "medium"}}


@pytest.fixture
def env():
    return gymnasium.make("skillc/ALFWorld-v0", render_mode="ansi", **GAMES)


def row(env, name: str) -> str:
    return next(line for line in env.render().splitlines() if line[2:].startswith(f"{name} "))


def test_it_shows_what_was_seen_where_the_agent_is_and_the_last_exchange(env):
    observation, info = env.reset(seed=0)
    assert all(row(env, name).endswith("?") for name in env.unwrapped._engine.game.receptacles)
    assert env.render().endswith(f"hand: empty   task: {info['goal']}\n\n{observation}")
    command = shortest_plan(env)[0]
    place = command.removeprefix("go to ")
    answer = env.step(command)[0]
    assert env.render().endswith(f"\n\n> {command}\n{answer}")
    assert row(env, place).startswith("@")
    seen = [name for name in env.unwrapped._engine.game.objects if f" {name}," in answer or f" {name}." in answer]
    assert all(name in row(env, place) for name in seen)


def test_closed_things_stay_unknown_until_they_are_opened(env):
    env.reset(seed=0)
    env.step("go to microwave 1")
    assert row(env, "microwave 1").split()[2:] == ["1", "closed", "?"]
    env.step(" open microwave 1 ")
    assert "open" in row(env, "microwave 1")
    assert "?" not in row(env, "microwave 1")


def test_the_hand_says_what_was_done_to_the_thing(env):
    env.reset(seed=0)
    for command in shortest_plan(env):
        env.step(command)
        if command.startswith("heat"):
            assert "(hot)" in env.render()
            return
    pytest.fail("the plan heats nothing")


def test_the_page_marks_the_agent_what_is_wanted_and_the_win():
    env = gymnasium.make("skillc/ALFWorld-v0", render_mode="html", **GAMES)
    _, info = env.reset(seed=0)
    wish = parse_goal(info["goal"])
    assert f'<div class="kind goal"><span>{wish.place}</span>' in env.render()
    assert " unseen" in env.render()
    plan = shortest_plan(env)
    env.step(plan[0])
    assert re.search(r'<div class="tile [^"]*here', env.render())
    env.step("<script>")
    page = env.render()
    assert '<div class="said nothing">Nothing happens.</div>' in page
    assert "<script>" not in page
    assert page.count('class="act"') == 2
    for command in plan[1:]:
        env.step(command)
    assert re.search(rf'<b class="goal">{wish.thing} \d+</b>', env.render())
    assert "won." in env.render()
