"""The next update's groups are played in a process of their own, with weights one step behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

pytest.importorskip("trl", reason="needs the extra 'train'")

from skillc_gym.errors import ConfigError
from tests.trainers.toys import GRADED, TOY_ID, timeless, toy_config
from trainers.config import TrainConfig
from trainers.learner.ahead import Ahead, Drawn, WeightsCopy, check_ahead
from trainers.models import load_model
from trainers.recipes import recipe_in
from trainers.training import run

NAMED = {"env": f"tests.trainers.toys:{TOY_ID}", "method": "grpo", "kl_coef": 0.0, **GRADED}
"""The other process finds an environment by its module."""


def config(folder: Path, name: str, **changes: Any) -> TrainConfig:
    return toy_config(folder, run=str(folder / name), **{**NAMED, **changes})


def replies(found: TrainConfig, update: int) -> list[Any]:
    """What the rollouts of an update said."""
    lines = (Path(found.run_folder) / "transcripts" / f"train-{update:06d}.jsonl").read_text().splitlines()
    return [json.loads(line)["turns"] for line in lines]


def test_without_a_learning_rate_it_is_what_it_is_without_it(toy_folder: Path) -> None:
    still, ahead = (
        run(config(toy_folder, str(flag), learning_rate=0.0, rollouts_ahead=flag)).metrics for flag in (False, True)
    )
    for one, other in zip(timeless(still), timeless(ahead), strict=True):
        engine = {name: other.pop(name) for name in list(other) if name.startswith("engine_")}
        assert {name: value for name, value in other.items() if isinstance(value, int | str)} == {
            name: value for name, value in one.items() if isinstance(value, int | str)
        }
        assert other.get("loss") == pytest.approx(one.get("loss"), abs=1e-6)
        assert other.get("grad_norm") == pytest.approx(one.get("grad_norm"), abs=1e-5)
        assert engine.get("engine_kl", 0.0) == pytest.approx(0.0, abs=1e-5)


def test_the_weights_that_play_are_one_step_behind(toy_folder: Path) -> None:
    """A step so long that every rollout tells which weights played it."""
    still, ahead = (
        config(toy_folder, "still", learning_rate=0.0),
        config(toy_folder, "ahead", learning_rate=0.05, rollouts_ahead=True),
    )
    moved = config(toy_folder, "moved", learning_rate=0.05)
    found = run(ahead).metrics
    run(still)
    run(moved)
    assert replies(ahead, 1) == replies(still, 1) == replies(moved, 1)
    assert replies(ahead, 2) == replies(still, 2) != replies(moved, 2), "played before the first step"
    assert replies(ahead, 3) != replies(still, 3)
    mismatch = [record["engine_kl"] for record in found if record["event"] == "train"]
    assert mismatch[0] == pytest.approx(0.0, abs=1e-5)
    assert abs(mismatch[1]) > 1e-3


def test_an_interrupted_run_goes_on_exactly(toy_folder: Path) -> None:
    whole = config(toy_folder, "whole", rollouts_ahead=True, save_every=1, keep_checkpoints=9)
    metrics, folder = timeless(run(whole).metrics), Path(whole.run_folder)
    weights = (folder / "policy" / "model.safetensors").read_bytes()
    # Of the third one the weights that were playing are damaged: it is passed over, as any damaged checkpoint is.
    (folder / "checkpoints" / "step-000003" / "ahead.pt").write_bytes(b"nothing")
    for later in ("checkpoints/step-000004", "policy"):
        shutil.rmtree(folder / later)
    assert timeless(run(whole).metrics) == metrics
    assert (folder / "policy" / "model.safetensors").read_bytes() == weights


def test_the_process_that_plays_outlives_a_signal_to_stop_and_its_end_is_told(toy_folder: Path) -> None:
    asked = config(toy_folder, "ended", rollouts_ahead=True)
    ahead, drawn = Ahead(asked, WeightsCopy(load_model(asked), lambda: None)), Drawn(1, ("train/echo/red-0",), (0,))
    how: dict[str, Any] = {"group_size": 1, "seed": 0, "sampling": asked.sampling}
    ahead.begin(drawn, **how)
    first = ahead.collect()
    os.kill(ahead._process.pid, signal.SIGTERM)
    ahead.begin(drawn, **how)
    assert [each.rows for each in ahead.collect()] == [each.rows for each in first]
    # Its end before it has read what it is asked, and before it is asked at all.
    os.kill(ahead._process.pid, signal.SIGSTOP)
    ahead.begin(drawn, **how)
    ahead._process.kill()
    for step in (ahead.collect, lambda: ahead.begin(drawn, **how)):
        with pytest.raises(RuntimeError, match="exit code -9"):
            step()
    ahead.close()


def test_a_device_has_written_the_copy_before_another_process_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    model: Any = SimpleNamespace(parameters=lambda: [SimpleNamespace(is_cuda=True)])
    ahead: Any = Ahead(TrainConfig(model="m"), WeightsCopy(model, lambda: done.append("refreshed")))
    ahead._connection = SimpleNamespace(send=lambda _: done.append("asked"))
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: done.append("written"))
    ahead.begin(Drawn(1, (), ()))
    assert done == ["refreshed", "written", "asked"]


@pytest.mark.parametrize(
    ("changes", "processes", "why"),
    [
        ({"engine": "vllm"}, 1, "serves the weights that learn"),
        ({"redraw_groups": 1}, 1, "leave it out"),
        ({"method": "evolver"}, 1, "learns between updates"),
        ({}, 2, "2 processes train"),
    ],
)
def test_what_cannot_be_played_ahead_is_refused(
    toy_folder: Path, changes: dict[str, Any], processes: int, why: str
) -> None:
    asked = config(toy_folder, "no", rollouts_ahead=True, **changes)
    with pytest.raises(ConfigError, match=why):
        check_ahead(asked, recipe_in(asked.env, asked.method, asked.method_options), processes)
