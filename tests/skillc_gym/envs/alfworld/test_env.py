"""The environment: the suite's contract with skills off and on, on generated and real games, and what is its own."""

import re

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from odd_houses import WON_AT_ONCE, write_game

import skillc_gym
from skill_library import load_library
from skillc_gym.chat import ChatFormat
from skillc_gym.curricula.skills import InternalizationCurriculum
from skillc_gym.envs.alfworld.env import ALFWorldEnv
from skillc_gym.envs.alfworld.experts.explorer import parse_goal
from skillc_gym.envs.alfworld.experts.planner import shortest_plan
from skillc_gym.testing import TextEnvContract
from skillc_gym.wrappers import ActionFormat, ChatPrompt, SkillCurriculum, SkillInjection, format_reply

ID = skillc_gym.ALFWORLD_ID
GENERATED = {"data": "generated", "split": "valid_seen"}
TASK_ID = "train/pick_and_place_simple-Mug-None-Desk-1/trial_T1"
ESSENTIAL = dict.fromkeys(("pick_and_place_simple", "pick_two_obj_and_place"), r"move .+ to .+") | {
    "look_at_obj_in_light": r"use (desklamp|floorlamp) \d+",
    "pick_clean_then_place_in_recep": r"clean .+ with sinkbasin \d+",
    "pick_heat_then_place_in_recep": r"heat .+ with microwave \d+",
    "pick_cool_then_place_in_recep": r"cool .+ with fridge \d+",
}


class TestGeneratedWithSkills(TextEnvContract):
    def make_env(self):
        return SkillInjection(gymnasium.make(ID, **GENERATED), library="alfworld")


class TestReal(TextEnvContract):
    @pytest.fixture(autouse=True)
    def _data(self, alfworld_data):
        self.data = str(alfworld_data)

    def make_env(self):
        return gymnasium.make(ID, data=self.data, split="valid_unseen")


@pytest.mark.parametrize("data", ["generated", "real"])
def test_the_essential_commands_of_walkthroughs_are_those_of_the_skills(data, request):
    core = ALFWorldEnv(data=request.getfixturevalue("alfworld_data") if data == "real" else data, split="valid_seen")
    library = load_library("alfworld")
    assert set(map(core.task_type_of, core.task_ids)) == set(library.task_types) == set(ESSENTIAL)
    for task_id in core.task_ids[:: max(1, len(core.task_ids) // 60)]:
        kind = core.task_type_of(task_id)
        used = [command for command in core.games.load(task_id).walkthrough if re.fullmatch(ESSENTIAL[kind], command)]
        assert len(used) == (2 if kind == "pick_two_obj_and_place" else 1), task_id
        told = (0, -2) if kind in ("look_at_obj_in_light", "pick_clean_then_place_in_recep") else (0,)
        assert all(used[0].split()[word] in library.for_task(kind).text for word in told)


def test_the_whole_stack_is_rebuilt_from_json():
    inner = SkillInjection(gymnasium.make(ID, **GENERATED), enabled=False, where="info")
    kinds = sorted({inner.unwrapped.task_type_of(task_id) for task_id in inner.unwrapped.task_ids})
    curriculum = InternalizationCurriculum(kinds, rho=0.5)
    env = ChatPrompt(ActionFormat(SkillCurriculum(inner, curriculum)), ChatFormat.compact().with_form("window:2"))
    again = gymnasium.make(gymnasium.envs.registration.EnvSpec.from_json(env.spec.to_json()))
    assert str(again) == str(env)
    assert again.reset(seed=5) == env.reset(seed=5)
    for reply in (format_reply("look"), "no", format_reply("inventory")):
        assert again.step(reply) == env.step(reply)


def test_masks_and_drawings_are_of_a_task_that_is_played(folder):
    env = ALFWorldEnv(data=folder, split="valid_seen", render_mode="ansi")
    for ask in (env.action_mask, env.render):
        with pytest.raises(ResetNeeded):
            ask()
    _, info = env.reset(seed=4)
    mask = env.action_mask()
    assert mask.dtype == np.int8
    assert [command for command, flag in zip(env.commands, mask, strict=True) if flag] == info["admissible_commands"]
    assert env.render()


def test_winning_terminates_and_a_step_limit_truncates(template, tmp_path):
    write_game(tmp_path, TASK_ID, template)
    env = gymnasium.make(ID, data=str(tmp_path), split="train", max_episode_steps=50)
    env.reset(seed=0)
    played = [env.step(command)[1:] for command in env.unwrapped.games.load(TASK_ID).walkthrough]
    told = [(*step[:3], step[3]["won"], step[3]["task_score"], step[3]["action_valid"]) for step in played]
    assert told == [(0.0, False, False, 0.0, 0.0, True)] * (len(told) - 1) + [(1.0, True, False, 1.0, 1.0, True)]
    env.reset(seed=0)
    assert [env.step("sing")[3] for _ in range(50)] == [False] * 49 + [True]


def test_a_task_won_at_the_start_says_so(house, tmp_path):
    write_game(tmp_path, TASK_ID, house(11, goal=WON_AT_ONCE)[0])
    env = ALFWorldEnv(data=tmp_path, split="train")
    assert env.reset(seed=0)[1]["won"] == 1.0
    assert env.step("sing")[1:3] == (1.0, True)


# Drawings -------------------------------------------------------------------------------------------------------------

HEATING = {"data": "generated", "task_types": "heat", "generator": {"seed": 3, "games_per_type": 2, "size": "medium"}}


@pytest.fixture
def drawn():
    env = gymnasium.make(ID, render_mode="ansi", **HEATING)
    return env, *env.reset(seed=0)


def row(env, name: str) -> str:
    return next(line for line in env.render().splitlines() if line[2:].startswith(f"{name} "))


def test_it_shows_what_was_seen_where_the_agent_is_and_the_last_exchange(drawn):
    env, observation, info = drawn
    assert all(row(env, name).endswith("?") for name in env.unwrapped._engine.game.receptacles)
    assert env.render().endswith(f"hand: empty   task: {info['goal']}\n\n{observation}")
    command = shortest_plan(env)[0]
    place = command.removeprefix("go to ")
    answer = env.step(command)[0]
    assert env.render().endswith(f"\n\n> {command}\n{answer}")
    assert row(env, place).startswith("@")
    seen = [name for name in env.unwrapped._engine.game.objects if f" {name}," in answer or f" {name}." in answer]
    assert all(name in row(env, place) for name in seen)


def test_closed_things_stay_unknown_until_they_are_opened_and_the_hand_says_what_was_done(drawn):
    env = drawn[0]
    env.step("go to microwave 1")
    assert row(env, "microwave 1").split()[2:] == ["1", "closed", "?"]
    env.step(" open microwave 1 ")
    assert "open" in row(env, "microwave 1")
    assert "?" not in row(env, "microwave 1")
    while "(hot)" not in env.render():
        env.step(shortest_plan(env)[0])
    assert "heat" in env.unwrapped.snapshot().action


def test_the_page_marks_the_agent_what_is_wanted_and_the_win():
    env = gymnasium.make(ID, render_mode="html", **HEATING)
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
