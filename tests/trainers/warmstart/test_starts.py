"""Starting points of a chosen difficulty."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillc_gym.errors import ConfigError, MissingDataError
from trainers.commands.cli.make_policy import Cloning, MakePolicyOptions, Shown
from trainers.warmstart.make import make_policy
from trainers.warmstart.shipped import shipped_policy

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
