"""Upstream itself loads generated games and answers them as the native engine does."""

from __future__ import annotations

import pytest

from benchmarks.parity.alfworld import compare
from skillc_gym.envs.alfworld.generate import SIZES, generate_game
from skillc_gym.envs.alfworld.tasks import SHORT_NAMES

pytestmark = pytest.mark.upstream


@pytest.mark.parametrize("kind", SHORT_NAMES.values())
def test_small_games_are_played_alike(kind: str, upstream):
    made = generate_game(kind, seed=5, size="small", split="valid_unseen")
    found = compare(made.task_id, made.raw, upstream, oracle="cached")
    assert found.differences == []
    assert found.wins > 0
    assert found.answers > 90


@pytest.mark.slow
@pytest.mark.parametrize("size", [size for size in SIZES if size != "small"])
def test_larger_games_are_played_alike(size: str, upstream):
    for index, kind in enumerate(SHORT_NAMES.values()):
        made = generate_game(kind, seed=6, size=size, index=index)
        found = compare(made.task_id, made.raw, upstream, oracle="cached")
        assert (found.task_id, found.differences) == (made.task_id, [])
        assert found.wins > 0
