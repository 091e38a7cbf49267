"""Traces tell runs apart, and only by what they are meant to."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.preset_traces import compare, configurations, trace
from trainers.recipes import recipe_names


def write_run(folder: Path, *, loss: float, seconds: float, weights: bytes = b"w", **more: float) -> Path:
    (folder / "policy").mkdir(parents=True)
    (folder / "policy" / "model.safetensors").write_bytes(weights)
    record = {"step": 1, "event": "train", "loss": loss, "seconds_update": seconds, **more}
    (folder / "metrics.jsonl").write_text(json.dumps(record) + "\n", encoding="utf-8")
    return folder


def test_times_and_new_figures_do_not_count_but_others_do(tmp_path):
    record = {"run": trace(write_run(tmp_path / "old", loss=0.1, seconds=1.0))}
    same = write_run(tmp_path / "same", loss=0.1, seconds=2.0, added=5.0)
    other = write_run(tmp_path / "other", loss=0.1000000001, seconds=1.0)
    heavier = write_run(tmp_path / "heavier", loss=0.1, seconds=1.0, weights=b"x")
    assert compare({"run": same}, record) == []
    assert compare({"run": other}, record) == ["run"]
    assert compare({"run": heavier}, record) == ["run"]
    assert compare({}, record) == ["run"]


def test_every_method_is_run_in_both_worlds():
    names = configurations(recipe_names())
    assert {f"{world}-{method}" for world in ("alfworld", "webshop") for method in recipe_names()} <= set(names)
    assert "alfworld-skillc-window" in names
