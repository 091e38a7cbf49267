"""Stable-Baselines3: the page's example, with a pair and a short training."""

import pytest
from scripted import run_blocks

pytest.importorskip("sb3_contrib", reason="needs the sb3 extra")


def test_the_page_plays_a_pair_and_trains():
    names = run_blocks("sb3.md")
    assert names["conditions"] == [1, 0]
    assert names["started"] == {names["task_id"]}
    assert names["episodes"]
    for episode in names["episodes"]:
        assert episode["l"] <= 10
        assert bool(episode["skill_sha256"]) == bool(episode["condition"])
        assert episode["won"] == episode["r"]
