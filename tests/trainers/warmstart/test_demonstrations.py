"""Demonstrations, and the policies that ship, made of them: whole, with a card that says what they can do."""

import json
import re
from pathlib import Path
from typing import Any

import gymnasium
import pytest

pytest.importorskip("torch", reason="needs the train extra")

from skill_library.controls import FILLER
from skillc_gym.chat import ChatFormat
from skillc_gym.envs.registry import env_spec, warm_started, warm_started_names
from skillc_gym.episodes import Episode, Turn
from skillc_gym.errors import ConfigError, UnknownNameError
from trainers.base import REAL, shipped_names, shipped_policy
from trainers.base.model_folders import HARD, is_shipped
from trainers.config import TrainConfig
from trainers.tracking import sha256_of_file
from trainers.warmstart import CARD, DemonstrationConfig
from trainers.warmstart.demonstration import Demonstration, demonstrations
from trainers.warmstart.recipes import essential_rate

CARELESS = warm_started("alfworld")[1].error_rates
HOUSES = {"seed": 1, "games_per_type": 3, "size": "small", "scenes": 40}
GAMES = {"data": "generated", "split": "train", "generator": HOUSES}


def play(count: int, **options: object) -> list:
    config = DemonstrationConfig(env_kwargs=GAMES, **options)
    return list(demonstrations(config, ChatFormat.compact(), count=count, seed=0))


def said(demo: Demonstration) -> list[str]:
    return [message["content"] for message in demo.messages if message["role"] == "assistant"]


def test_skills_make_the_difference_that_was_asked_for():
    rates = (dict.fromkeys(CARELESS, rate) for rate in (0.0, 1.0))
    careful, careless = (play(12, error_rate_with_skill=0.0, error_rates_without_skill=each) for each in rates)
    assert all(demo.won for demo in careful)
    assert [demo.won for demo in careless] == [False, True] * 6


def test_a_skill_says_where_things_belong_in_games_that_do_not():
    games = {**GAMES, "generator": {**HOUSES, "convention": "drawn"}, "task_types": ["heat"]}
    config = DemonstrationConfig(
        env_kwargs=games, error_rates_without_skill={"pick_heat_then_place_in_recep": 0.0}, error_rate_with_skill=0.0
    )
    shown = list(demonstrations(config, ChatFormat.compact(), count=24, seed=0))
    assert all(demo.won and "its place is the" in demo.messages[0]["content"] for demo in shown if demo.condition)
    assert not all(demo.won for demo in shown)


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


def test_types_and_conditions_come_in_turn_and_equal_seeds_give_equal_demonstrations():
    played = play(12)
    assert [demo.condition for demo in played] == [0, 1] * 6
    assert [demo.task_type for demo in played[::2]] == sorted(CARELESS)
    assert played == play(12)


def shop(count: int, **options: object) -> list:
    world = {"data": "generated", "split": "test", "generator": {"size": 100}}
    config = DemonstrationConfig(env="webshop", env_kwargs=world, **{"error_rate_with_skill": 0.0, **options})
    return list(demonstrations(config, env_spec("webshop").chat_format("compact"), count=count, seed=0))


def test_a_careless_customer_buys_without_choosing_options_and_one_who_reads_the_skill_what_is_wanted():
    careless = [demo for demo in shop(24, error_rates_without_skill={"shopping": 1.0}) if not demo.condition]
    assert len(careless) == 12
    assert not any("choose" in reply for demo in careless for reply in said(demo))
    assert sum(demo.won for demo in careless) < 6
    careful = [demo for demo in shop(24) if demo.condition]
    assert sum(demo.won for demo in careful) > 8
    assert all("Skill: buy the product" in demo.messages[0]["content"] for demo in careful)


@pytest.mark.parametrize(
    ("ask", "options", "message"),
    [
        (play, {"error_rates_without_skill": {}}, "no probability for .*look_at_obj_in_light"),
        (play, {"error_rates_without_skill": {**CARELESS, "look_at_obj_in_light": 2}}, "in_light: .* got 2"),
        (play, {"slips": 1.5}, "slips .* got 1.5"),
        (shop, {"slips": 0.1}, r"no slips in webshop; slips must be 0, got 0\.1"),
    ],
)
def test_what_is_no_probability_and_slips_of_a_customer_are_refused(ask, options: dict[str, object], message: str):
    with pytest.raises(ConfigError, match=message):
        ask(1, **options)


# The policies that ship ----------------------------------------------------------------------------------------------


def card_of(folder: Path) -> dict[str, Any]:
    """A policy's card, once its weights are those of which the card is."""
    card = json.loads((folder / CARD).read_text(encoding="utf-8"))
    assert card["weights_sha256"] == sha256_of_file(folder / "model.safetensors")
    return card


@pytest.mark.parametrize(("env", "name"), [(env, name) for env in warm_started_names() for name in shipped_names(env)])
def test_a_shipped_policy_is_whole_and_its_card_is_of_it(env, name):
    folder = shipped_policy(env, name)
    # An unknown word would leave a control's prompt empty.
    assert FILLER in json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    card = card_of(folder)
    assert (card["run"] if name.endswith("-trained") else card["recipe"]["demonstrations"])["env"] == env
    if name.endswith("-hard"):
        found = card["measured"]["temperatures"]
        assert set(found) == {"1.0", "0.4"}
        assert all(rates["sr_with"] > 0.6 > 0.3 > rates["sr_without"] for rates in found.values())
        assert card["versions"]["git"]["changed"] is False


def test_a_policy_of_a_data_set_says_where_it_began_and_names_no_place_on_a_disk():
    card, of_hard = (card_of(shipped_policy("alfworld", name)) for name in (REAL, f"{REAL}-hard"))
    assert card["start_sha256"] == card["start_card"]["weights_sha256"]
    assert of_hard["start_sha256"] == card["weights_sha256"]
    for text in (json.dumps(card), json.dumps(of_hard)):
        assert "alfworld_games_json_2.1.1.tar.xz" in text
        assert '": "/' not in text


@pytest.mark.parametrize("start", [HARD, f"{REAL}-hard"])
def test_a_trained_policy_is_whole_and_learned_to_do_without(start):
    place = shipped_policy("alfworld", start)
    card = card_of(place.with_name(f"{place.name}_trained"))
    assert card["start_sha256"] == sha256_of_file(place / "model.safetensors")
    assert card["run"]["model"] == start
    assert card["measured"]["sr_without_after"] > 0.5 > 0.1 > card["measured"]["sr_without_before"]
    assert card["versions"]["git"]["changed"] is False


def test_a_configuration_names_a_shipped_policy():
    assert TrainConfig(model="shipped-hard").model_path == str(shipped_policy("alfworld", "shipped-hard"))
    assert not is_shipped("shippeded")
    with pytest.raises(UnknownNameError, match="shipped-hard"):
        _ = TrainConfig(model="shipped-hrad").model_path


def test_the_essential_step_is_found_among_possible_commands():
    def episode(*actions: tuple[str, bool]) -> Episode:
        turns = tuple(Turn("", "", action, True, valid, 0.0) for action, valid in actions)
        return Episode("t", "heat", "g", 0, "", "", "", 0, 0, turns, False, 0.0, False, True)

    tried = [episode(("heat mug 1 with microwave 1", possible)) for possible in (True, False)]
    assert essential_rate(tried, "^heat ") == 0.5
    moves = (("move mug 1 to desk 1", True), ("look", True))
    two = r"(?s)^(?:move|put) .*^(?:move|put) "
    assert essential_rate([episode(*moves), episode(*moves, *moves)], two) == 0.5
