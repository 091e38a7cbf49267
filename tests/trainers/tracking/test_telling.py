"""What is shown of a run: by loggers, read back from their files, and to a person."""

import io
import sqlite3
import sys
import time
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from skillc_gym.errors import ConfigError, MissingExtraError
from trainers.tracking import make_progress
from trainers.tracking.loggers import LOGGERS, Logger, kept_id, scalars
from trainers.tracking.progress import PlainProgress

HEAT = "pick_heat_then_place_in_recep"
VALIDATION = {
    "step": 5,
    "event": "validation",
    "overall_with": 0.75,
    "overall_without": 0.25,
    "gap_smoothed": {HEAT: 0.5},
    "gate": {HEAT: 0.625},
    "active": [HEAT],
}
TRAIN = {
    "step": 6, "event": "train", "loss": 0.125, "rollout_fraction_with": {HEAT: 0.375}, "success": 0.5,
    "success_with": None, "success_without": 0.75, "tokens_generated": 3000, "seconds_generate": 2.0,
}  # fmt: skip
PANELS = {
    "success/with_skill": 0.75,
    "success/without_skill": 0.25,
    "gap/heat": 0.5,
    "gate/heat": 0.625,
    "share_with_skill/heat": 0.375,
}


def logged(name: str, folder: Path, *records: Any) -> None:
    logger: Logger = LOGGERS.get(name)()
    logger.start(folder, {"preset": "skillc"})
    for record in records:
        logger.log(record)
    logger.close()


def test_a_records_numbers_have_names_and_the_methods_have_sections():
    found = {**scalars(VALIDATION), **scalars(TRAIN)}
    assert PANELS.items() <= found.items()
    assert found["train/loss"] == 0.125
    assert found[f"validation/gap_smoothed/{HEAT}"] == 0.5
    assert not {"train/success_with", "validation/active", "train/step"} & set(found)
    without = scalars({name: value for name, value in VALIDATION.items() if name not in ("gate", "gap_smoothed")})
    assert not [name for name in without if name.startswith(("gate", "gap"))]


def test_a_run_keeps_its_name(tmp_path: Path):
    assert kept_id(tmp_path, "wandb") == kept_id(tmp_path, "wandb") != kept_id(tmp_path, "trackio")


def test_tensorboard_holds_the_panels_and_forgets_repeated_updates(tmp_path: Path):
    pytest.importorskip("tensorboard", reason="needs the extra tensorboard")
    pytest.importorskip("torch", reason="needs the train extra")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    logged("tensorboard", tmp_path, VALIDATION, TRAIN, {**TRAIN, "step": 7, "loss": 9.0})
    logged("tensorboard", tmp_path, {**TRAIN, "step": 7, "loss": 0.5})
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    assert set(PANELS) <= set(events.Tags()["scalars"])
    assert [(event.step, event.value) for event in events.Scalars("train/loss")] == [(6, 0.125), (7, 0.5)]
    assert "custom_scalars__config__" in events.Tags()["tensors"]


def test_wandb_writes_offline_and_says_how_to_log_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    wandb = pytest.importorskip("wandb", reason="needs the extra wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    logged("wandb", tmp_path, VALIDATION, TRAIN)
    (run,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    assert run.stem == f"run-{kept_id(tmp_path, 'wandb')}"
    # W&B's own process writes the file, and may still be at it.
    deadline = time.monotonic() + 30
    while not all(name.encode() in run.read_bytes() for name in (*PANELS, "preset")):
        assert time.monotonic() < deadline
        time.sleep(0.05)

    for error in (wandb.errors.UsageError, wandb.errors.CommError, ValueError):
        monkeypatch.setattr(wandb, "init", Mock(side_effect=error("no key, or no network\nand more")))
        with pytest.raises(ConfigError, match=r"cannot start \(no key, or no network\).*WANDB_MODE=offline"):
            LOGGERS.get("wandb")().start(tmp_path, {})


def test_trackio_keeps_the_panels_on_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "store"))  # read when trackio is imported
    pytest.importorskip("trackio", reason="needs the extra trackio")
    for records in ((VALIDATION,), (TRAIN,)):
        logged("trackio", tmp_path, *records)
    with sqlite3.connect(tmp_path / "store" / "skillc-gym.db") as base:
        rows = base.execute("select run_name, step, cast(metrics as blob) from metrics order by step").fetchall()
    assert {row[0] for row in rows} == {f"{tmp_path.name}-{kept_id(tmp_path, 'trackio')}"}
    assert [row[1] for row in rows] == [5, 6]
    assert all(name.encode() in b"".join(row[2] for row in rows) for name in PANELS)


@pytest.mark.parametrize("name", ["wandb", "trackio"])
def test_a_missing_package_names_its_extra(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=rf"skillc-gym\[{name}\]"):
        LOGGERS.get(name)().start(tmp_path, {})


def show(progress: Any) -> None:
    progress.start("a run", 0, 10)
    progress.phase("episodes", 3, 64)
    progress.record(VALIDATION)
    progress.record(TRAIN)
    progress.note("a note")


def test_without_a_terminal_each_event_is_a_line() -> None:
    stream = io.StringIO()
    progress = make_progress(stream)
    assert isinstance(progress, PlainProgress)
    show(progress)
    title, validation, step, note = stream.getvalue().splitlines()
    assert (title, note) == ("a run", "a note")
    assert validation.endswith("with  75%  without  25%   smoothed gaps: heat +0.50   active: heat")
    assert step.startswith("step    6/10   success  50% (with   --, without  75%)   loss +0.125   1,500 tokens/s   ")


def test_on_a_terminal_bars_stand_below_the_lines() -> None:
    pytest.importorskip("rich")

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal, plain = Terminal(), io.StringIO()
    for stream in (terminal, plain):
        progress = make_progress(stream)
        show(progress)
        progress.close()
    for piece in (*plain.getvalue().splitlines(), "6/10", "episodes", "3/64"):
        assert piece in terminal.getvalue()
