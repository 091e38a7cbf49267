"""Games are measured: by both experts, by proofs, by the generator's knobs, and next to real ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import games
from benchmarks.games import main


def measured(tmp_path: Path, *words: str) -> Any:
    out = tmp_path / "found.json"
    assert main([*words, "--out", str(out), "--allow-changes"]) == 0
    return json.loads(out.read_text())


@pytest.mark.slow
def test_both_experts_are_counted_by_split_and_type(tmp_path: Path):
    words = ("--data", "generated", "--splits", "valid_seen", "--seeds", "0", "1", "--max-steps", "100")
    found = measured(tmp_path, "experts", *words)
    planner, explorer = (found["splits"]["valid_seen"][expert] for expert in ("planner", "explorer"))
    assert (planner["episodes"], planner["won"], planner["most_steps"] < 15) == (300, 300, True)
    assert (explorer["episodes"], explorer["won"]) == (600, 600)
    assert explorer["median_steps"] > planner["median_steps"]
    assert set(found["types"]) == {"pick", "look", "clean", "heat", "cool", "pick2"}
    assert found["lost"] == []


def test_games_are_proved(tmp_path: Path, capsys):
    (small, real) = measured(tmp_path, "proofs", "--games", "12", "--upstream", "0")["proofs"]
    assert (small["size"], small["games"], small["won_by_planner"], small["won_in_upstream"]) == ("small", 12, 12, 0)
    assert (real["size"], real["games"], real["won_by_planner"]) == ("real", 12, 12)
    assert main(["proofs", "--sizes", "huge"]) == 2
    assert "size of a house 'huge'" in capsys.readouterr().err
    assert main(["proofs", "--games", "6", "--sizes", "small", "--upstream", "-1"]) == 2
    assert "at least 0, got -1" in capsys.readouterr().err


def test_difficulty_is_recorded_and_a_knob_that_does_nothing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(games, "KNOBS", {"hidden": (0.0, 1.0), "receptacles": (6, 6)})
    out = tmp_path / "found.json"
    assert main(["knobs", "--games", "24", "--out", str(out), "--allow-changes"]) == 1
    found = json.loads(out.read_text())
    assert found["stuck"] == ["receptacles"]
    first, second = found["knobs"]["hidden"]
    assert first["explorer"] < second["explorer"]


@pytest.mark.slow
def test_real_games_are_counted_next_to_generated_ones(alfworld_data: Path, tmp_path: Path):
    found = measured(tmp_path, "likeness", "--data", str(alfworld_data), "--games", "12")
    assert set(found["measures"]["receptacles"]) == set(found["types"]) == {"real", "generated"}


def test_missing_data_is_named(capsys, tmp_path: Path):
    assert main(["likeness", "--data", str(tmp_path / "nowhere")]) == 2
    assert "nowhere" in capsys.readouterr().err
