from __future__ import annotations

import re

import gymnasium
import pytest

pytest.importorskip("torch", reason="needs the train extra")

import skillc_gym  # noqa: F401 - registers the environments
from skillc_gym.chat import ChatFormat
from trainers.policy.demonstrations import CARELESS, DemonstrationConfig, demonstrations

GAMES = {
    "data": "generated",
    "split": "train",
    "generator": {"seed": 1, "games_per_type": 3, "size": "small", "scenes": 40},
}


def play(count: int, **options: object) -> list:
    config = DemonstrationConfig(env_kwargs=GAMES, **options)
    return list(demonstrations(config, ChatFormat.compact(), count=count, seed=0))


def test_types_and_conditions_come_in_turn():
    played = play(24, slips=0.0)
    assert [demo.condition for demo in played] == [0, 1] * 12
    assert [played[2 * index].task_type for index in range(6)] == sorted(CARELESS)


def test_skills_make_the_difference_that_was_asked_for():
    careful = play(12, careless_with=0.0, careless_without=dict.fromkeys(CARELESS, 0.0), slips=0.0)
    careless = play(12, careless_with=0.0, careless_without=dict.fromkeys(CARELESS, 1.0), slips=0.0)
    assert all(demo.won for demo in careful)
    assert [demo.won for demo in careless] == [False, True] * 6


def test_slips_are_impossible_commands_and_the_right_one_follows():
    played = [demo for demo in play(48, slips=0.3) if demo.slips]
    assert played
    for demo in played:
        env = gymnasium.make("skillc/ALFWorld-v0", **GAMES)
        env.reset(options={"task_id": demo.task_id})
        replies = [message["content"] for message in demo.messages if message["role"] == "assistant"]
        for turn, reply in enumerate(replies):
            command = re.search(r"<action> (.*) </action>", reply)[1]
            *_, info = env.step(command)
            assert info["action_valid"] is (turn not in demo.slips)


def test_equal_seeds_give_equal_demonstrations():
    assert play(12) == play(12)
