"""Demonstrations, and starting points of a chosen difficulty made of them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest

from skillc_gym.envs.registry import env_spec
from skillc_gym.errors import ConfigError, MissingDataError
from skillc_gym.wrappers import ChatPrompt
from skillc_lab.cli.main import main as skillc
from skillc_lab.commands.make_policy import Cloning, MakePolicyOptions, Shown
from trainers.base import shipped_policy
from trainers.warmstart import demonstration, make, make_policy, shipped_recipe

pytest.importorskip("torch", reason="needs the train extra")

from skillc_gym.chat import ChatFormat
from skillc_gym.envs.registry import warm_started
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


def test_skills_make_the_difference_that_was_asked_for():
    careful, careless = (
        play(12, error_rate_with_skill=0.0, error_rates_without_skill=dict.fromkeys(CARELESS, rate))
        for rate in (0.0, 1.0)
    )
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


def test_an_environment_is_closed_when_a_demonstration_fails_or_is_not_wanted(monkeypatch):
    closed = []
    monkeypatch.setattr(ChatPrompt, "close", lambda env: closed.append(env.spec))
    config = DemonstrationConfig(env_kwargs=GAMES)
    played = demonstrations(config, ChatFormat.compact(), count=2, seed=0)
    next(played)
    played.close()
    with pytest.raises(ConfigError, match="names no probability"):
        list(demonstrations(replace(config, error_rates_without_skill={}), ChatFormat.compact(), count=2, seed=0))
    assert len(closed) == 2


def test_a_slip_may_be_a_command_of_one_word():
    expert = SimpleNamespace(thought="find mug")
    env = SimpleNamespace(unwrapped=SimpleNamespace(commands=["wait"]))
    info = {"admissible_commands": ["look"]}
    slips = {demonstration._slip(env, expert, info, np.random.default_rng(seed)) for seed in range(20)}
    assert any("<think> find wait </think>" in slip for slip in slips)


def test_held_out_demonstrations_come_first_and_only_if_any_are_wanted(tmp_path, monkeypatch):
    monkeypatch.setattr(make, "_play_all", lambda *_: pytest.fail("played in vain"))
    recipe = shipped_recipe()
    missing = replace(recipe, demonstrations=replace(recipe.demonstrations, env_kwargs={"data": "/nowhere"}))
    with pytest.raises(MissingDataError):
        make_policy(replace(missing, held_out=1), tmp_path)
    assert make._held_out(missing, ChatFormat.compact()) == []


def test_types_and_conditions_come_in_turn_and_equal_seeds_give_equal_demonstrations():
    played = play(12)
    assert [demo.condition for demo in played] == [0, 1] * 6
    assert [demo.task_type for demo in played[::2]] == sorted(CARELESS)
    assert played == play(12)


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
    assert len(careless) == 12
    assert not any("choose" in reply for demo in careless for reply in said(demo))
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


def options(
    tmp_path: Path, start: str | None = None, error_rate_without_skill: float | None = None
) -> MakePolicyOptions:
    return MakePolicyOptions(
        Shown(episodes=24, error_rate_without_skill=error_rate_without_skill),
        Cloning(batches=2, batch_episodes=4, learning_rate=1e-4, start=start),
        out=tmp_path / "policy",
    )


def test_a_policy_goes_on_from_another_with_its_vocabulary(tmp_path):
    recipe = options(tmp_path, start="shipped", error_rate_without_skill=1.0).recipe()
    assert recipe.demonstrations.error_rates_without_skill == dict.fromkeys(CARELESS, 1.0)
    card = make_policy(recipe, tmp_path / "policy")
    vocabularies = {(folder / "tokenizer.json").read_bytes() for folder in (tmp_path / "policy", shipped_policy())}
    assert len(vocabularies) == 1
    assert card["start_sha256"] != card["weights_sha256"]
    # A fresh policy of two batches predicts nothing; one that goes on predicts its demonstrations nearly surely.
    assert card["loss_first"] < 0.1
    without = [rates["without"] for rates in card["demonstrator_success"].values()]
    assert without == [0.0] * 6


def test_a_start_that_is_no_policy_is_refused_in_words(tmp_path):
    with pytest.raises(MissingDataError, match="holds no checkpoint"):
        make_policy(options(tmp_path, start=str(tmp_path)).recipe(), tmp_path / "policy")
    with pytest.raises(ConfigError, match=r"between 0 and 1, got 1\.5"):
        make_policy(options(tmp_path, error_rate_without_skill=1.5).recipe(), tmp_path / "policy")


def test_generated_rooms_are_mixed_into_those_of_a_data_set(tmp_path):
    games = tmp_path / "games"
    assert skillc(["tools", "make-games", "--out", str(games), "--games-per-type", "3"]) == 0
    asked = MakePolicyOptions(
        Shown(episodes=24, max_steps=12, slips=0.1, generated_share=0.5),
        Cloning(batches=1, batch_episodes=2),
        out=tmp_path / "policy",
        data=str(games),
    )
    recipe = asked.recipe()
    assert recipe.mixture is not None
    assert (recipe.mixture.max_steps, recipe.mixture.slips) == (12, 0.1)
    shown = [demo.task_id for demo in make._play_all(recipe, env_spec("alfworld").chat_format("compact"), None)]
    assert len(shown) == 24
    assert len(set(shown[12:])) == 12
    assert not set(shown[:12]) & set(shown[12:])
    assert make_policy(recipe, asked.out)["recipe"]["mixture_share"] == 0.5


def test_a_mixture_of_generated_rooms_with_themselves_is_refused(tmp_path):
    asked = MakePolicyOptions(Shown(generated_share=0.5), Cloning(), out=tmp_path)
    with pytest.raises(ConfigError, match=r"Generated tasks are mixed into those of a data set; got data='generated'"):
        asked.recipe()
    recipe = shipped_recipe()
    with pytest.raises(ConfigError, match=r"mixture_share must be at most 1, got 1\.5"):
        make_policy(replace(recipe, mixture_share=1.5), tmp_path)
    with pytest.raises(ConfigError, match="the recipe has no mixture"):
        make_policy(replace(recipe, mixture_share=0.5), tmp_path)
