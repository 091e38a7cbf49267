"""An interrupted cloning goes on to the weights of one that was not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers", reason="needs the train extra")

import torch

from skillc_gym.errors import CheckpointError, ConfigError
from skillc_lab.commands.make_policy import Cloning, MakePolicyOptions, Shown
from trainers.rollout.chat_encoder import ChatEncoder
from trainers.warmstart import CloningConfig, PolicySize, build_model, build_tokenizer, clone, make
from trainers.warmstart.cloning import tokenise_dialogue
from trainers.warmstart.progress_file import CLONING_FILE, ProgressFile

SIZE = PolicySize(layers=1, width=32, heads=2, feed_forward=32)
CONFIG = CloningConfig(batches=12, batch_episodes=2, learning_rate=1e-2)


def kept_in(folder: Path, key: str = "recipe") -> ProgressFile:
    return ProgressFile(folder / CLONING_FILE, key, every=5)


def cloned(
    kept: ProgressFile | None = None, stop_after: int | None = None, steps: list[int] | None = None
) -> tuple[list[float], dict[str, Any]]:
    tokenizer = build_tokenizer(["see", "take", "mug", "plate", "pan"])
    things = [[{"role": "user", "content": f"see {x}"}, {"role": "assistant", "content": x}] for x in ("mug", "pan")]
    data = [tokenise_dialogue(ChatEncoder(tokenizer), chat) for chat in things * 3]
    model = build_model(tokenizer, SIZE)

    def on_step(step: int, loss: float) -> None:
        if steps is not None:
            steps.append(step)
        if step + 1 == stop_after:
            raise KeyboardInterrupt

    losses = clone(model, data, CONFIG, pad_token_id=tokenizer.pad_token_id, on_step=on_step, kept=kept)
    return losses, {name: value.clone() for name, value in model.state_dict().items()}


def test_an_interrupted_cloning_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    whole_losses, whole = cloned()
    with pytest.raises(KeyboardInterrupt):
        cloned(kept_in(tmp_path), stop_after=8)
    steps: list[int] = []
    losses, weights = cloned(kept_in(tmp_path), steps=steps)
    assert steps == [5, 6, 7, 8, 9, 10, 11]
    assert losses == whole_losses
    assert all(torch.equal(weights[name], whole[name]) for name in whole)


def test_another_recipes_beginning_is_refused_before_anything_is_computed(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        cloned(kept_in(tmp_path), stop_after=5)
    with pytest.raises(ConfigError, match="begun with other settings"):
        kept_in(tmp_path, "another").check()
    with pytest.raises(ConfigError, match="begun with other settings"):
        cloned(kept_in(tmp_path, "another"))


def test_a_damaged_file_is_said_and_kept(tmp_path: Path) -> None:
    (tmp_path / CLONING_FILE).write_bytes(b"half a file")
    with pytest.raises(CheckpointError, match="remove it to begin anew"):
        kept_in(tmp_path).check()
    assert (tmp_path / CLONING_FILE).read_bytes() == b"half a file"


def test_a_policy_that_is_done_leaves_no_beginning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = MakePolicyOptions(Shown(episodes=8, max_steps=5), Cloning(batches=3, batch_episodes=2), out=tmp_path / "p")

    def interrupt(phase: str, done: int, total: int, loss: float) -> None:
        if (phase, done) == ("cloning", 2):
            raise KeyboardInterrupt

    monkeypatch.setattr(make, "ProgressFile", lambda path, key: ProgressFile(path, key, every=1))
    with pytest.raises(KeyboardInterrupt):
        make.make_policy(asked.recipe(), asked.out, progress=interrupt)
    assert (asked.out / CLONING_FILE).is_file()
    gone_on = make.make_policy(asked.recipe(), asked.out)
    assert not (asked.out / CLONING_FILE).exists()
    at_once = make.make_policy(asked.recipe(), tmp_path / "at-once")
    assert gone_on["weights_sha256"] == at_once["weights_sha256"]
