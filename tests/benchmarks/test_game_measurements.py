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


def test_games_are_proved(tmp_path: Path):
    (proof,) = measured(tmp_path, "proofs", "--games", "12", "--sizes", "small", "--upstream", "0")["proofs"]
    assert (proof["games"], proof["won_by_planner"], proof["won_in_upstream"]) == (12, 12, 0)


def test_difficulty_lengthens_what_the_explorer_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(games, "KNOBS", {"difficulty": (0.0, 1.0)})
    easy, hard = measured(tmp_path, "knobs", "--games", "30")["knobs"]["difficulty"]
    assert all(easy[name] < hard[name] for name in ("plan", "explorer", "read", "commands"))


@pytest.mark.slow
def test_real_games_are_counted_next_to_generated_ones(alfworld_data: Path, tmp_path: Path):
    found = measured(tmp_path, "likeness", "--data", str(alfworld_data), "--games", "12")
    assert set(found["measures"]["receptacles"]) == set(found["types"]) == {"real", "generated"}


def test_missing_data_is_named(capsys, tmp_path: Path):
    assert main(["likeness", "--data", str(tmp_path / "nowhere")]) == 2
    assert "nowhere" in capsys.readouterr().err
