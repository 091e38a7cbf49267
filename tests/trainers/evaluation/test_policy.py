"""A policy evaluated from a configuration: the panel, its identity, attempts, greedy play, files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skillc_gym.errors import ConfigError, UnknownNameError
from trainers.config import TrainConfig
from trainers.evaluation import PairedReport, open_panel
from trainers.evaluation.policy import evaluate_policy

pytest.importorskip("transformers", reason="needs the extra 'train'")
SHOP = TrainConfig(
    model="shipped",
    env="webshop",
    data="generated",
    split="test",
    chat="compact",
    env_options={"generator": {"seed": 0, "size": 1000}},
    max_episode_steps=2,
    max_reply_tokens=16,
    max_context=1024,
)


def test_each_task_is_played_several_times_in_both_conditions_and_greedily_too(tmp_path: Path) -> None:
    evaluated = evaluate_policy(SHOP, per_type=3, attempts=2, greedy_too=True)
    report = evaluated.paired
    assert (report.overall.n, report.attempts, len(report.episodes)) == (3, 2, 12)
    assert all(0.0 < (outcome.best_score or 0.0) <= 1.0 for outcome in report.outcomes)
    assert report.cuts("steps")["with"] > 0
    assert evaluated.greedy is not None
    assert evaluated.greedy.sampling["greedy"]
    assert evaluated.greedy.panel_sha256 == evaluated.paired.panel_sha256
    evaluated.save_all(tmp_path)
    assert PairedReport.load(tmp_path / "greedy" / "report.json") == evaluated.greedy
    assert PairedReport.load(tmp_path / "report.json") == evaluated.paired


@pytest.mark.parametrize("option", [{"seed_prices": 1}, {"noun_tagger": str.split}, {"compat": "upstream"}])
def test_the_panels_identity_covers_the_shops_options(option: dict[str, Any]) -> None:
    other = SHOP.with_(env_options={**SHOP.env_options, **option})
    assert open_panel(other, 3).tasks == open_panel(SHOP, 3).tasks
    assert open_panel(other, 3).identity != open_panel(SHOP, 3).identity


def test_the_panels_identity_covers_the_generator_of_houses() -> None:
    def identity(**options: Any) -> Any:
        config = TrainConfig(model="x", data="generated", split="valid_unseen", env_options=options)
        return open_panel(config, 1).identity

    small = {"generator": {"games_per_type": 2, "size": "small"}}
    assert identity(**small) == identity(**small)
    assert identity(**small) != identity(generator={"games_per_type": 2, "size": "small", "seed": 1})
    assert identity(**small) != identity(**small, domain_randomization=True)


def test_a_panel_is_named_task_by_task(tmp_path: Path) -> None:
    tasks = ["synthetic/7", "synthetic/3", "synthetic/7"]
    assert open_panel(SHOP, named=tasks).tasks == ("synthetic/3", "synthetic/7")
    with pytest.raises(UnknownNameError, match=r"synthetic/900.*split="):
        open_panel(SHOP, named=[*tasks, "synthetic/900"])
    with pytest.raises(ConfigError, match="not both"):
        open_panel(SHOP, 2, named=tasks)
    with pytest.raises(ConfigError, match="at least 1, got 0"):
        open_panel(SHOP, 0)
    evaluate_policy(SHOP, tasks=tasks, folder=tmp_path).save_all(tmp_path)
    with pytest.raises(ConfigError, match="tasks_sha256"):
        evaluate_policy(SHOP, tasks=tasks[:1], folder=tmp_path)


def test_goals_that_their_own_product_cannot_win_are_known() -> None:
    panel = open_panel(SHOP, 20)
    assert set(panel.best_scores) == set(panel.tasks)
