"""Proofs of generated games: what is not won stops them."""

from __future__ import annotations

import json

import pytest

from benchmarks import measure_difficulty, prove_games
from skillc_gym.envs.alfworld.generate import GeneratedGames
from skillc_gym.envs.alfworld.generate.proofs import proved_by_planner
from skillc_gym.errors import InvalidGameError


class Impossible(GeneratedGames):
    """Games whose object cannot be taken."""

    def raw(self, task_id):
        raw = super().raw(task_id)
        return {**raw, "pddl_problem": raw["pddl_problem"].replace("(pickupable ", "(cleanable ")}


def test_every_game_is_played_to_its_end():
    games = GeneratedGames("train", games_per_type=2)
    assert len(proved_by_planner(games)) == 12
    assert all(2 <= steps <= 12 for steps in proved_by_planner(games, games.task_ids[:3]))


def test_a_game_that_cannot_be_won_is_named():
    games = Impossible("train", ["heat"], games_per_type=1)
    with pytest.raises(InvalidGameError, match="trial_G00000000_000000"):
        proved_by_planner(games)


def test_the_record_says_what_was_proved(tmp_path, capsys):
    out = tmp_path / "proof"
    assert prove_games.main(["--games", "12", "--sizes", "small", "real", "--upstream", "0", "--out", str(out)]) == 0
    found = json.loads(out.with_suffix(".json").read_text())["proofs"]
    assert [(one["size"], one["games"], one["won_by_planner"]) for one in found] == [
        ("small", 12, 12),
        ("real", 12, 12),
    ]
    assert "| `real` | 12 |" in out.with_suffix(".md").read_text()
    assert prove_games.main(["--sizes", "huge", "--out", str(out)]) == 2
    assert "size of a house 'huge'" in capsys.readouterr().err
    assert prove_games.main(["--games", "6", "--sizes", "small", "--upstream", "-1", "--out", str(out)]) == 2
    assert "at least 0, got -1" in capsys.readouterr().err
    out.with_suffix(".json").write_text("")
    assert prove_games.main(["--out", str(out.with_suffix(".json") / "proof")]) == 2
    assert "choose another" in capsys.readouterr().err


def test_difficulty_is_recorded_and_a_knob_that_does_nothing_is_named(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(measure_difficulty, "SETTINGS", {"hidden": (0.0, 1.0), "receptacles": (6, 6)})
    monkeypatch.setattr(measure_difficulty, "MOVES", {"hidden": {"explorer": 1}, "receptacles": {"explorer": 1}})
    out = tmp_path / "difficulty"
    assert measure_difficulty.main(["--games-per-type", "4", "--out", str(out)]) == 1
    assert capsys.readouterr().err == "measure_difficulty: receptacles does not move explorer throughout\n"
    assert "| `hidden` | **plan** | **explorer** |" in out.with_suffix(".md").read_text()
