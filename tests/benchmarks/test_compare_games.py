from __future__ import annotations

import pytest

from benchmarks.compare_games import MEASURES, chosen, main, sample, summary
from skillc_gym.envs.alfworld.data.games import open_games


def test_figures_of_generated_games_lie_within_their_size():
    games = open_games("generated", generator={"games_per_type": 4, "size": "small"})
    found = sample(games, chosen(games.task_ids, 10))
    assert set(found) == set(MEASURES)
    assert all(len(values) == 10 for values in found.values())
    assert all(5 <= count <= 9 for count in found["receptacles"])
    mean, low, high = summary({"generated": found})["receptacles"]["generated"]
    assert low <= mean <= high


def test_the_choice_is_the_same_everywhere():
    assert chosen(list("abcdefghij"), 4) == chosen(list("abcdefghij"), 4)
    assert len(set(chosen(list("abcdefghij"), 4))) == 4


def test_missing_data_is_named(capsys, tmp_path):
    assert main(["--data", str(tmp_path / "nowhere")]) == 2
    assert "nowhere" in capsys.readouterr().err


@pytest.mark.slow
def test_real_games_are_drawn_beside_generated_ones(alfworld_data, tmp_path):
    pytest.importorskip("matplotlib", reason="needs the train extra")
    assert main(["--data", str(alfworld_data), "--games", "12", "--out", str(tmp_path / "found")]) == 0
    assert (tmp_path / "found" / "histograms.png").stat().st_size > 10_000
    assert "| receptacles |" in (tmp_path / "found.md").read_text(encoding="utf-8")
