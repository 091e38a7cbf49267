"""What an update costs: methods next to GRPO, this trainer next to TRL's."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("trl", reason="needs the train extra")

from benchmarks.method_costs import _references, measure_costs, same_rollouts
from benchmarks.trl_throughput import _padded
from benchmarks.trl_throughput import measure as measure_throughput
from tests.trainers.toys import toy_config
from trainers.base import TokenRow
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


def test_rows_are_padded_as_trl_has_them():
    import torch

    rows = [TokenRow([5], [6, 7, 8], [1, 0, 1], [0.0] * 3), TokenRow([5, 6], [7], [1], [0.0])]
    padded = _padded(rows, 0, torch.device("cpu"))
    assert padded["prompt_ids"].tolist() == [[0, 5], [5, 6]]
    assert padded["completion_mask"].tolist() == [[1, 1, 1], [1, 0, 0]]
    assert padded["tool_mask"].tolist() == [[1, 0, 1], [1, 0, 0]]
    assert padded["advantages"].tolist() == [1.0, -1.0]
    assert int(padded["num_items_in_batch"]) == 3


def test_this_trainer_and_trls_update_on_all_rows(toy_folder: Path):
    config = toy_config(toy_folder, kl_coef=0.0, steps=3, micro_batches=2, transcripts_every=0, validate_every=99)
    record = measure_throughput(config)
    assert record["rows"] == config.tasks_per_step * config.group_size
    assert all(len(seconds) == 2 and min(seconds) > 0 for seconds in record["seconds"].values())
    assert record["ratio"] > 0
