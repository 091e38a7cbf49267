"""The cost of methods beside GRPO's: the same rollouts on both sides, and a table that can be made again."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("trl", reason="needs the train extra")

from benchmarks.method_costs import _references, cost_table, main, measure_costs, same_rollouts
from tests.trainers import conftest
from tests.trainers.toys import toy_config
from trainers.recipes import get_recipe

toy_folder = conftest.toy_folder
RECORD = Path(__file__).resolve().parents[2] / "docs/results/method_costs.json"


def test_methods_are_measured_on_the_same_rollouts_as_grpo(toy_folder):
    config = toy_config(toy_folder, learning_rate=0.0, temperature=2.0, validate_every=10**6, transcripts_every=0)
    record = measure_costs(config, ["skillc"], rounds=1, updates=1)
    grpo, skillc = record["methods"]
    assert (grpo["method"], grpo["to_grpo"], grpo["to_grpo_on_its_rollouts"]) == ("grpo", 1.0, 1.0)
    assert skillc["same_rollouts"]
    assert skillc["prompt_tokens"] > 0
    assert skillc["to_grpo_on_its_rollouts"] > 0


def test_grpo_on_a_methods_rollouts_differs_in_credit_and_loss_alone():
    own = get_recipe("skillc+relabelling")
    beside = get_recipe(same_rollouts("skillc+relabelling"))
    plain = get_recipe("grpo")
    assert (beside.allocation, beside.curriculum, beside.memory) == (own.allocation, own.curriculum, own.memory)
    assert (beside.advantage, beside.losses, beside.rows) == (plain.advantage, plain.losses, plain.rows)


def test_methods_that_play_alike_share_what_they_stand_beside():
    beside = _references(["grpo", "skillc", "ppo", "mixed_norm", "no_pairing"])
    assert beside["grpo"] == beside["ppo"] == "grpo"
    assert beside["skillc"] == beside["mixed_norm"] == same_rollouts("skillc")
    assert beside["no_pairing"] == same_rollouts("no_pairing")
    assert list(beside) == ["grpo", "ppo", "skillc", "mixed_norm", "no_pairing"]


def test_a_record_is_drawn_again_without_measuring(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("<!-- costs:start -->\nold\n<!-- costs:end -->\n")
    assert main(["--draw", str(RECORD), "--page", str(page)]) == 0
    assert "Medians per update of 64 rollouts" in page.read_text()
    assert "| `skillc` |" in page.read_text()


def test_the_table_says_where_rollouts_differ():
    row = {
        "method": "skillc",
        "seconds": 2.0,
        "prompt_tokens": 1234,
        "generated_tokens": 567,
        "to_grpo": 1.1,
        "to_grpo_on_its_rollouts": 1.02,
        "same_rollouts": True,
    }
    assert "| `skillc` | 1,234 | 567 | 2.00 | 1.10 | 1.02 |" in cost_table({"methods": [row]})
    assert "| 1.02 [0.90, 1.10] |" in cost_table({"methods": [{**row, "ratios": [1.02, 0.9, 1.1]}]})
    assert "(rollouts differ)" in cost_table({"methods": [{**row, "same_rollouts": False}]})
