from __future__ import annotations

import re
from dataclasses import replace

import gymnasium
import pytest

pytest.importorskip("torch", reason="needs the train extra")

import skillc_gym  # noqa: F401 - registers the environments
from skillc_gym.chat import ChatFormat
from skillc_gym.envs.registry import env_spec, warm_started
from skillc_gym.errors import ConfigError
from trainers.warmstart import Demonstration, DemonstrationConfig, demonstrations

CARELESS = warm_started("alfworld")[1].error_rates
GAMES = {
    "data": "generated",
    "split": "train",
    "generator": {"seed": 1, "games_per_type": 3, "size": "small", "scenes": 40},
}


def play(count: int, **options: object) -> list:
    config = DemonstrationConfig(env_kwargs=GAMES, **options)
    return list(demonstrations(config, ChatFormat.compact(), count=count, seed=0))


def said(demo: Demonstration) -> list[str]:
    return [message["content"] for message in demo.messages if message["role"] == "assistant"]


def test_types_and_conditions_come_in_turn():
    played = play(24, slips=0.0)
    assert [demo.condition for demo in played] == [0, 1] * 12
    assert [played[2 * index].task_type for index in range(6)] == sorted(CARELESS)


def test_skills_make_the_difference_that_was_asked_for():
    careful = play(12, error_rate_with_skill=0.0, error_rates_without_skill=dict.fromkeys(CARELESS, 0.0), slips=0.0)
    careless = play(12, error_rate_with_skill=0.0, error_rates_without_skill=dict.fromkeys(CARELESS, 1.0), slips=0.0)
    assert all(demo.won for demo in careful)
    assert [demo.won for demo in careless] == [False, True] * 6


def test_slips_are_impossible_commands_and_the_right_one_follows():
    played = [demo for demo in play(48, slips=0.3) if demo.slips]
    assert played
    for demo in played:
        env = gymnasium.make("skillc/ALFWorld-v0", **GAMES)
        env.reset(options={"task_id": demo.task_id})
        for turn, reply in enumerate(said(demo)):
            command = re.search(r"<action> (.*) </action>", reply)[1]
            *_, info = env.step(command)
            assert info["action_valid"] is (turn not in demo.slips)
    slips = [said(demo)[turn] for demo in played for turn in demo.slips]
    wanted = [slip for slip in slips if re.match(r"<think> take (\w+) for \w+ </think> <action> take \1 \d", slip)]
    assert 0.1 < len(wanted) / len(slips) < 0.6


def test_equal_seeds_give_equal_demonstrations():
    assert play(12) == play(12)


SHOP = DemonstrationConfig(
    env="webshop",
    env_kwargs={"data": "generated", "split": "test", "generator": {"size": 100}},
    error_rate_with_skill=0.0,
)


def shop(**options: object) -> list:
    config = replace(SHOP, **options)
    return list(demonstrations(config, env_spec("webshop").chat_format("compact"), count=24, seed=0))


def test_a_careless_customer_buys_without_choosing_options():
    careless = [demo for demo in shop(error_rates_without_skill={"shopping": 1.0}) if not demo.condition]
    said = [message["content"] for demo in careless for message in demo.messages if message["role"] == "assistant"]
    assert len(careless) == 12
    assert not any("choose" in reply for reply in said)
    assert sum(demo.won for demo in careless) < 6


def test_a_customer_who_reads_the_skill_buys_what_is_wanted():
    careful = [demo for demo in shop() if demo.condition]
    assert sum(demo.won for demo in careful) > 8
    assert all("Skill: buy the product" in demo.messages[0]["content"] for demo in careful)


def test_a_customer_does_not_slip():
    with pytest.raises(ConfigError, match=r"no slips in webshop; slips must be 0, got 0\.1"):
        shop(slips=0.1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"error_rates_without_skill": {}}, "no probability for .*look_at_obj_in_light"),
        ({"error_rates_without_skill": {**CARELESS, "look_at_obj_in_light": 2}}, "look_at_obj_in_light: .* got 2"),
        ({"error_rate_with_skill": -0.1}, "error_rate_with_skill .* got -0.1"),
        ({"slips": 1.5}, "slips .* got 1.5"),
    ],
)
def test_what_is_no_probability_is_named(options: dict[str, object], message: str):
    with pytest.raises(ConfigError, match=message):
        play(1, **options)
