from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from odd_houses import WON_AT_ONCE, write_game

import skillc_gym
from skillc_gym.envs.alfworld.env import ALFWorldEnv
from skillc_gym.errors import UnknownNameError


@pytest.fixture
def env(folder):
    return ALFWorldEnv(data=folder, split="valid_seen")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"split": "test"}, "split"), ({"engine": "unreal"}, "engine"), ({"render_mode": "human"}, "render mode"),
     ({"task_types": ["fly"]}, "task type")],
)  # fmt: skip
def test_bad_arguments_are_errors(folder, arguments, message):
    with pytest.raises(UnknownNameError, match=f"Unknown {message}"):
        ALFWorldEnv(**{"data": folder, "split": "valid_seen"} | arguments)


def test_the_mask_marks_the_admissible_commands(env):
    _, info = env.reset(seed=4)
    mask = env.action_mask()
    assert mask.dtype == np.int8
    assert [command for command, flag in zip(env.commands, mask, strict=True) if flag] == info["admissible_commands"]


def test_ansi_draws_the_house_and_the_last_exchange(folder):
    env = ALFWorldEnv(data=folder, split="valid_seen", render_mode="ansi")
    observation, info = env.reset(seed=0)
    assert env.render().endswith(f"task: {info['goal']}\n\n{observation}")
    observation, *_ = env.step("look")
    assert env.render().endswith(f"> look\n{observation}")
    env.close()
    env.close()
    with pytest.raises(ResetNeeded):
        env.render()


def test_nothing_is_drawn_before_the_first_task(folder):
    with pytest.raises(ResetNeeded):
        ALFWorldEnv(data=folder, split="valid_seen", render_mode="ansi").render()


def test_winning_terminates_and_a_step_limit_truncates(template, tmp_path):
    task_id = "train/pick_and_place_simple-Mug-None-Desk-1/trial_T1"
    write_game(tmp_path, task_id, template)
    env = gymnasium.make(skillc_gym.ALFWORLD_ID, data=str(tmp_path), split="train", max_episode_steps=50)
    env.reset(seed=0)
    *steps, last = env.unwrapped.games.load(task_id).walkthrough
    for command in steps:
        _, reward, terminated, truncated, info = env.step(command)
        assert (reward, terminated, truncated, info["won"], info["action_valid"]) == (0.0, False, False, 0.0, True)
    _, reward, terminated, truncated, info = env.step(last)
    assert (reward, terminated, truncated, info["won"], info["task_score"]) == (1.0, True, False, 1.0, 1.0)
    env.reset(seed=0)
    assert [env.step("sing")[3] for _ in range(50)] == [False] * 49 + [True]


def test_a_task_won_at_the_start_says_so(house, template, tmp_path):
    raw, _ = house(11, goal=WON_AT_ONCE)
    write_game(tmp_path, "train/pick_and_place_simple-Mug-None-Desk-1/trial_T1", raw)
    env = ALFWorldEnv(data=tmp_path, split="train")
    assert env.reset(seed=0)[1]["won"] == 1.0
    assert env.step("sing")[1:3] == (1.0, True)
