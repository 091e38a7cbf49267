"""The policies that ship: by name, whole, and with a card that says what they can do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from skill_library.controls import FILLER
from skillc_gym.envs.registry import warm_started_names
from skillc_gym.episodes import Episode, Turn
from skillc_gym.errors import UnknownNameError
from trainers.base import HARD, REAL, is_shipped, shipped_names, shipped_policy
from trainers.config import TrainConfig
from trainers.tracking import sha256_of_file
from trainers.warmstart import CARD

NAMES = [(env, name) for env in warm_started_names() for name in shipped_names(env)]


def card_of(folder: Path) -> dict[str, Any]:
    """A policy's card, once its weights are those of which the card is."""
    card = json.loads((folder / CARD).read_text(encoding="utf-8"))
    assert card["weights_sha256"] == sha256_of_file(folder / "model.safetensors")
    return card


@pytest.mark.parametrize(("env", "name"), NAMES)
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
    pytest.importorskip("torch", reason="needs the train extra")
    from trainers.warmstart import essential_rate

    def episode(*actions: tuple[str, bool]) -> Episode:
        turns = tuple(Turn("", "", action, True, valid, 0.0) for action, valid in actions)
        return Episode("t", "heat", "g", 0, "", "", "", 0, 0, turns, False, 0.0, False, True)

    heated, impossible = episode(("heat mug 1 with microwave 1", True)), episode(("heat mug 1 with microwave 1", False))
    assert essential_rate([heated, impossible], "^heat ") == 0.5
    moves = (("move mug 1 to desk 1", True), ("look", True))
    two = r"(?s)^(?:move|put) .*^(?:move|put) "
    assert essential_rate([episode(*moves), episode(*moves, *moves)], two) == 0.5
