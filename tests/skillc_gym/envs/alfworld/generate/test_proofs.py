"""Proofs of generated games: what is not won stops them."""

from __future__ import annotations

import pytest

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
