"""The demonstration with a shipped policy, two updates and a tiny panel."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="needs the train extra")

from skillc_gym.errors import ConfigError, UnknownNameError
from skillc_lab.commands.demo import DemoConfig, DemoOptions, check_same, describe, run_demo
from tests.skillc_lab.commands.small_demo import SMALL
from trainers.base import shipped_policy
from trainers.recipes import RECOMMENDED, recipe_in
from trainers.tracking.progress import SilentProgress

KEYS = {
    *("finished", "env", "preset", "data", "seed", "seconds", "steps", "split", "games", "splits", "panel_sha256"),
    *("sr_with_before", "sr_without_before", "sr_with_after", "sr_without_after", "change_without"),
    *("sr_with_before_interval", "sr_without_before_interval", "sr_with_after_interval", "sr_without_after_interval"),
    *("gap_before", "gap_after", "page", "pictures", "transcripts"),
}


class StopsAfter(SilentProgress):
    """Presses Ctrl-C when a step's training record has come."""

    def __init__(self, step: int) -> None:
        self.step = step

    def record(self, record: Any) -> None:
        if record["event"] == "train" and record["step"] == self.step:
            raise KeyboardInterrupt


@pytest.fixture(scope="module")
def config(tmp_path_factory) -> DemoConfig:
    return DemoConfig(
        out=tmp_path_factory.mktemp("demo") / "run",
        steps=2,
        held_out_per_type=1,
        held_out_splits=("valid_unseen", "valid_seen"),
        options=SMALL,
    )


@pytest.fixture(scope="module")
def stages(config: DemoConfig) -> tuple[dict[str, Any], bytes, dict[str, Any]]:
    """An interrupted demonstration, the report it left, and the demonstration gone on with."""
    interrupted = run_demo(config, progress=StopsAfter(2))
    left = (config.out / "before" / "report.json").read_bytes()
    return interrupted, left, run_demo(config)


@pytest.mark.slow
def test_an_interrupted_demonstration_goes_on(config: DemoConfig, stages):
    interrupted, left, summary = stages
    assert interrupted["finished"] is False
    assert summary["finished"] is True
    assert (config.out / "before" / "report.json").read_bytes() == left
    records = [json.loads(line) for line in (config.out / "metrics.jsonl").read_text().splitlines()]
    assert [record["step"] for record in records if record["event"] == "train"] == [1, 2]


@pytest.mark.slow
def test_the_summary_says_what_was_measured(config: DemoConfig, stages):
    _, _, summary = stages
    assert set(summary) == KEYS
    assert json.loads((config.out / "summary.json").read_text()) == json.loads(json.dumps(summary))
    assert (summary["steps"], summary["split"], summary["games"]) == (2, "valid_unseen", 6)
    assert set(summary["splits"]) == {"valid_unseen", "valid_seen"}
    assert len(summary["gap_before"]) == len(summary["gap_after"]) == 6
    for arm in ("with", "without"):
        for when in ("before", "after"):
            low, high = summary[f"sr_{arm}_{when}_interval"]
            assert 0 <= low <= summary[f"sr_{arm}_{when}"] <= high <= 1
    points = 100 * (summary["sr_without_after"] - summary["sr_without_before"])
    assert summary["change_without"]["points"] == pytest.approx(points)


@pytest.mark.slow
def test_what_the_summary_names_is_there(config: DemoConfig, stages):
    _, _, summary = stages
    for path in (summary["page"], *summary["pictures"].values(), *summary["transcripts"]):
        assert Path(path).stat().st_size > 0
    for split in ("", "_valid_seen"):
        for when in ("before", "after"):
            report = json.loads((config.out / f"{when}{split}" / "report.json").read_text())
            assert report["panel_sha256"]
    text = describe(summary)
    assert "Success on 6 held-out tasks" in text
    assert "after 2 updates" in text


@pytest.mark.parametrize(
    ("changed", "named"),
    [({"steps": 3}, "steps was 2 and is 3"), ({"held_out_per_type": 4}, "held_out_per_type"), ({"seed": 5}, "seed")],
)
def test_another_demonstration_does_not_go_into_its_folder(tmp_path: Path, changed: dict[str, int], named: str):
    config = DemoConfig(out=tmp_path, steps=2)
    check_same(config)
    check_same(config)
    with pytest.raises(ConfigError, match=named):
        check_same(replace(config, **changed))


def test_options_that_json_changes_are_the_same_demonstration(tmp_path: Path):
    config = DemoConfig(out=tmp_path, options={"task_types": ("heat", "pick")})
    check_same(config)
    check_same(config)


def test_only_skillc_on_generated_games_retires_skills_of_no_visible_use(tmp_path: Path):
    assert DemoConfig(out=tmp_path).training().method_options == {"tau_retire": 0.05}
    assert DemoConfig(out=tmp_path, preset="no_pairing").training().method_options == {"tau_retire": 0.05}
    assert DemoConfig(out=tmp_path, data="games.tar.xz").training().method_options == {}


def test_the_training_is_that_of_the_train_command(tmp_path: Path):
    config = DemoConfig(out=tmp_path, steps=7, seed=3, preset="grpo")
    training = config.training()
    assert (training.steps, training.seed, training.preset, training.run) == (7, 3, "grpo", str(tmp_path))
    assert Path(training.model).name == "checkpoint"
    assert replace(config, options={"task_sampling": "uniform"}).training().task_sampling == "uniform"
    assert (training.share_prefixes, training.engine_options) == (True, {"draft_tokens": 3})
    for theirs in ({"engine": "vllm"}, {"lora_rank": 2, "lora_dropout": 0.1}):
        other = replace(config, options=theirs).training()
        assert (other.share_prefixes, other.engine_options) == (False, {})


def test_two_methods_part_from_the_hard_start_and_one_alone_has_the_easy_one(monkeypatch):
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)
    both, alone = DemoOptions(), DemoOptions(versus="none", method="skillc")
    assert (both.method, both.other, both.config().steps) == (RECOMMENDED, "grpo", 25)
    assert both.config().start == shipped_policy("alfworld", "shipped-hard")
    assert (alone.other, alone.config().steps, alone.config().start) == (None, 45, shipped_policy("alfworld"))
    assert DemoOptions(method="grpo").other is None
    assert DemoOptions(env="coins").config().shipped == "shipped"


def test_real_games_start_from_a_policy_of_their_own(tmp_path: Path):
    config = DemoConfig(out=tmp_path, data="games.tar.xz")
    assert config.start == shipped_policy("alfworld", "shipped-real")
    assert DemoOptions(data="games.tar.xz").config().start == shipped_policy("alfworld", "shipped-real-hard")
    assert replace(config, env="webshop").start == tmp_path / "warm_start"
    assert replace(config, policy=tmp_path / "mine").start == tmp_path / "mine"
    assert config.training().env_options == {}


def test_the_shop_has_one_skill_that_stays(tmp_path: Path):
    training = DemoConfig(out=tmp_path, env="webshop").training()
    pruning = recipe_in(training.env, training.method, training.method_options).curriculum.pruning
    assert (pruning.capacity, pruning.retire_by) == ((1,), ())
    assert Path(training.model).name == "checkpoint_webshop"
    assert training.chat_options == {"role": "customer"}


def test_what_is_left_open_is_the_environments(tmp_path: Path):
    houses, shop = (DemoConfig(out=tmp_path, env=env) for env in ("alfworld", "webshop"))
    assert (houses.splits, houses.per_type) == (("valid_unseen",), 40)
    assert (shop.splits, shop.per_type) == (("test",), 240)
    assert replace(shop, held_out_per_type=0).per_type is None
    assert replace(shop, held_out_splits=("valid",)).splits == ("valid",)


@pytest.mark.slow
def test_the_shop_is_demonstrated_with_the_shipped_policy(tmp_path: Path):
    few = {"tasks_per_step": 2, "group_size": 2, "panel_per_type": 2, "validate_every": 1, "save_every": 1}
    config = DemoConfig(out=tmp_path, env="webshop", steps=1, held_out_per_type=12, options=few)
    summary = run_demo(config)
    assert (summary["env"], summary["split"], summary["games"]) == ("webshop", "test", 12)
    assert summary["sr_with_before"] > 0.5 > summary["sr_without_before"]
    assert "held-out tasks" in describe(summary)
    records = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [record["active"] for record in records if record["event"] == "validation"] == [["shopping"]] * 2


def test_an_environment_without_demonstration_is_named(tmp_path: Path):
    with pytest.raises(UnknownNameError, match="webshop"):
        DemoConfig(out=tmp_path, env="webshp").training()
