"""The environment: the suite's contract with skills off and on, on generated and real games, and what is its own."""

from __future__ import annotations

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
from skillc_gym.errors import UnknownNameError
from skillc_gym.testing import TextEnvContract
from skillc_gym.wrappers import ActionFormat, ChatPrompt, SkillCurriculum, SkillInjection, format_reply

ID = skillc_gym.ALFWORLD_ID
GENERATED = {"data": "generated", "split": "valid_seen"}
TASK_ID = "train/pick_and_place_simple-Mug-None-Desk-1/trial_T1"


class TestGenerated(TextEnvContract):
    def make_env(self):
        return gymnasium.make(ID, **GENERATED)


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
    steps = {
        "look_at_obj_in_light": r"use (desklamp|floorlamp) \d+",
        "pick_clean_then_place_in_recep": r"clean .+ with sinkbasin \d+",
        "pick_heat_then_place_in_recep": r"heat .+ with microwave \d+",
        "pick_cool_then_place_in_recep": r"cool .+ with fridge \d+",
        "pick_and_place_simple": r"move .+ to .+",
        "pick_two_obj_and_place": r"move .+ to .+",
    }
    core = ALFWorldEnv(data=request.getfixturevalue("alfworld_data") if data == "real" else data, split="valid_seen")
    assert set(map(core.task_type_of, core.task_ids)) == set(load_library("alfworld").task_types) == set(steps)
    for task_id in core.task_ids[:: max(1, len(core.task_ids) // 60)]:
        kind = core.task_type_of(task_id)
        used = [command for command in core.games.load(task_id).walkthrough if re.fullmatch(steps[kind], command)]
        assert len(used) == (2 if kind == "pick_two_obj_and_place" else 1), task_id
        said = load_library("alfworld").for_task(kind).text
        assert used[0].split()[0] in said
        if kind in ("look_at_obj_in_light", "pick_clean_then_place_in_recep"):
            assert used[0].split()[-2] in said


def test_the_whole_stack_is_rebuilt_from_json():
    inner = SkillInjection(gymnasium.make(ID, **GENERATED), enabled=False, where="info")
    kinds = sorted({inner.unwrapped.task_type_of(task_id) for task_id in inner.unwrapped.task_ids})
    curriculum = InternalizationCurriculum(kinds, rho=0.5)
    env = ChatPrompt(ActionFormat(SkillCurriculum(inner, curriculum)), ChatFormat.compact().with_form("window:2"))
    again = gymnasium.make(gymnasium.envs.registration.EnvSpec.from_json(env.spec.to_json()))
    assert str(again) == str(env)
    assert again.get_wrapper_attr("enabled") is False
    assert again.reset(seed=5) == env.reset(seed=5)
    for reply in (format_reply("look"), "no", format_reply("inventory")):
        assert again.step(reply) == env.step(reply)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"split": "test"}, "split"), ({"engine": "unreal"}, "engine"), ({"render_mode": "human"}, "render mode")],
)
def test_bad_arguments_are_errors(folder, arguments, message):
    with pytest.raises(UnknownNameError, match=f"Unknown {message}"):
        ALFWorldEnv(**{"data": folder, "split": "valid_seen"} | arguments)


def test_the_mask_marks_the_admissible_commands(folder):
    env = ALFWorldEnv(data=folder, split="valid_seen")
    with pytest.raises(ResetNeeded):
        env.action_mask()
    _, info = env.reset(seed=4)
    mask = env.action_mask()
    assert mask.dtype == np.int8
    assert [command for command, flag in zip(env.commands, mask, strict=True) if flag] == info["admissible_commands"]


def test_nothing_is_drawn_before_the_first_task_and_after_the_end(folder):
    env = ALFWorldEnv(data=folder, split="valid_seen", render_mode="ansi")
    with pytest.raises(ResetNeeded):
        env.render()
    env.reset(seed=0)
    assert env.render()
    env.close()
    with pytest.raises(ResetNeeded):
        env.render()


def test_winning_terminates_and_a_step_limit_truncates(template, tmp_path):
    write_game(tmp_path, TASK_ID, template)
    env = gymnasium.make(ID, data=str(tmp_path), split="train", max_episode_steps=50)
    env.reset(seed=0)
    *steps, last = env.unwrapped.games.load(TASK_ID).walkthrough
    for command in steps:
        _, reward, terminated, truncated, info = env.step(command)
        assert (reward, terminated, truncated, info["won"], info["action_valid"]) == (0.0, False, False, 0.0, True)
    _, reward, terminated, truncated, info = env.step(last)
    assert (reward, terminated, truncated, info["won"], info["task_score"]) == (1.0, True, False, 1.0, 1.0)
    env.reset(seed=0)
    assert [env.step("sing")[3] for _ in range(50)] == [False] * 49 + [True]


def test_a_task_won_at_the_start_says_so(house, tmp_path):
    write_game(tmp_path, TASK_ID, house(11, goal=WON_AT_ONCE)[0])
    env = ALFWorldEnv(data=tmp_path, split="train")
    assert env.reset(seed=0)[1]["won"] == 1.0
    assert env.step("sing")[1:3] == (1.0, True)
