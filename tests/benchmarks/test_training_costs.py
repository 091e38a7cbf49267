"""What an update costs: setting by setting, and this trainer next to TRL's."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("trl", reason="needs the train extra")

from benchmarks.language_model_costs import measure as measure_settings
from benchmarks.trl_throughput import GROUPS, OURS, _padded
from benchmarks.trl_throughput import measure as measure_throughput
from tests.trainers.conftest import toy_folder
from tests.trainers.toys import TOY_ID, toy_config
from trainers.base import TokenRow

__all__ = ["toy_folder"]


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
    # The process that plays ahead finds an environment by its module.
    named = {"env": f"tests.trainers.toys:{TOY_ID}", "steps": 3, "micro_batches": 2}
    config = toy_config(toy_folder, kl_coef=0.0, transcripts_every=0, validate_every=99, **named)
    record = measure_throughput(config)
    assert record["rows"] == config.tasks_per_step * config.group_size
    assert set(record["sides"]) == {*OURS, "trl"}
    for side in record["sides"].values():
        assert len(side["tokens"]) == len(side["learning"]["seconds"]) == 2
        assert 0 < side["whole"]["tokens_per_second"] < side["learning"]["tokens_per_second"]
    assert record["sides"]["trl"]["learning"]["ratio"] == 1.0
    # TRL learns from the rows of the first side, of which the same teach.
    assert set(record["groups"]) == {*GROUPS, "trl"}
    assert record["groups"]["trl"]["tokens"] == record["groups"]["skillc, all groups"]["tokens"]


def test_settings_are_measured_on_the_same_rollouts(toy_folder: Path):
    found = measure_settings(toy_config(toy_folder, max_reply_tokens=8, kl_coef=0.0, env_options={"turns": 2}))
    assert {side["episodes"] for side in found["playing"].values()} == {16}
    assert found["playing"]["choosing, shared, copies"]["own_tokens"] == 32
    assert (
        found["playing"]["generation, passes as at first"]["ratio"] == found["learning"]["row by row"]["ratio"] == 1.0
    )
    assert found["rows"]["unique_tokens"] < found["rows"]["tokens"]
    worst = {name: side["logprob_differences"]["worst"] for name, side in found["learning"].items()}
    assert worst["row by row, float32"] == 0.0
    assert 0.0 < worst["shared, float32"] < 1e-4 < worst["shared, copies"]
