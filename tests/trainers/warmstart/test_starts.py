"""Starting points of a chosen difficulty."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from skillc_gym.envs.registry import env_spec
from skillc_gym.errors import ConfigError, MissingDataError
from skillc_lab.cli.main import main as skillc
from skillc_lab.commands.make_policy import Cloning, MakePolicyOptions, Shown
from trainers.base import shipped_policy
from trainers.warmstart import make, make_policy, shipped_recipe

pytest.importorskip("torch", reason="needs the train extra")


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
    card = make_policy(recipe, tmp_path / "policy")
    vocabulary = "tokenizer.json"
    assert (tmp_path / "policy" / vocabulary).read_bytes() == (shipped_policy() / vocabulary).read_bytes()
    assert card["start_sha256"] != card["weights_sha256"]
    # A fresh policy of two batches predicts nothing; one that goes on predicts its demonstrations nearly surely.
    assert card["loss_first"] < 0.1
    without = [rates["without"] for rates in card["demonstrator_success"].values()]
    assert without == [0.0] * 6


def test_the_error_rate_applies_to_every_type(tmp_path):
    chosen = options(tmp_path, error_rate_without_skill=0.5).recipe().demonstrations.error_rates_without_skill
    assert chosen is not None
    assert len(chosen) == 6
    assert set(chosen.values()) == {0.5}


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
    shown = [demo.task_id for demo in make._demonstrated(recipe, env_spec("alfworld").chat_format("compact"))]
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
