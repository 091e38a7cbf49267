from __future__ import annotations

import json

from benchmarks.measure_experts import main


def test_both_experts_are_counted_by_split_and_type(tmp_path, capsys):
    out = tmp_path / "experts"
    words = ["--data", "generated", "--splits", "valid_seen", "--seeds", "0", "1", "--max-steps", "100"]
    assert main([*words, "--out", str(out)]) == 0
    found = json.loads(out.with_suffix(".json").read_text())
    planner, explorer = (found["splits"]["valid_seen"][expert] for expert in ("planner", "explorer"))
    assert (planner["episodes"], planner["won"], planner["most_steps"] < 15) == (300, 300, True)
    assert (explorer["episodes"], explorer["won"]) == (600, 600)
    assert explorer["median_steps"] > planner["median_steps"]
    assert set(found["types"]) == {"pick", "look", "clean", "heat", "cool", "pick2"}
    assert found["lost"] == []
    assert "| `valid_seen` | explorer | 600 of 600 |" in capsys.readouterr().out


def test_lost_episodes_are_listed(tmp_path):
    out = tmp_path / "experts"
    assert (
        main(["--data", "generated", "--splits", "train", "--seeds", "0", "--max-steps", "5", "--out", str(out)]) == 0
    )
    found = json.loads(out.with_suffix(".json").read_text())
    explorer = found["splits"]["train"]["explorer"]
    assert len(found["lost"]) == explorer["episodes"] - explorer["won"] > 0
    assert {line["expert"] for line in found["lost"]} == {"explorer"}


def test_missing_data_is_named(tmp_path, capsys):
    assert main(["--data", str(tmp_path / "nowhere")]) == 2
    assert "nowhere" in capsys.readouterr().err
