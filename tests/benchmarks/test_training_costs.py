"""What an update of a method costs, next to GRPO's."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("trl", reason="needs the train extra")

from benchmarks.method_costs import _references, measure_costs, same_rollouts
from tests.trainers.toys import toy_config
from trainers.recipes import get_recipe


def test_methods_are_measured_on_the_same_rollouts_as_grpo(toy_folder: Path):
    config = toy_config(toy_folder, learning_rate=0.0, temperature=2.0, validate_every=10**6, transcripts_every=0)
    grpo, skillc = measure_costs(config, ["skillc"], rounds=1, updates=1)["methods"]
    assert (grpo["method"], grpo["to_grpo"], grpo["to_grpo_on_its_rollouts"]) == ("grpo", 1.0, 1.0)
    assert skillc["same_rollouts"]
    assert skillc["to_grpo_on_its_rollouts"] > 0


def test_grpo_on_a_methods_rollouts_differs_in_credit_and_loss_alone():
    own, plain = get_recipe("skillc+relabelling"), get_recipe("grpo")
    beside = get_recipe(same_rollouts("skillc+relabelling"))
    assert (beside.allocation, beside.curriculum, beside.memory) == (own.allocation, own.curriculum, own.memory)
    assert (beside.advantage, beside.losses, beside.rows) == (plain.advantage, plain.losses, plain.rows)


def test_methods_that_play_alike_share_what_they_stand_beside():
    beside = _references(["grpo", "skillc", "ppo", "mixed_norm", "no_pairing"])
    assert beside["grpo"] == beside["ppo"] == "grpo"
    assert beside["skillc"] == beside["mixed_norm"] == same_rollouts("skillc")
    assert beside["no_pairing"] == same_rollouts("no_pairing")
    assert list(beside) == ["grpo", "ppo", "skillc", "mixed_norm", "no_pairing"]
