"""The generated games that the fuzzers of ALFWorld start from."""

from __future__ import annotations

from skillc_gym.envs.alfworld.data.game_set import GameSet
from skillc_gym.envs.alfworld.data.games import open_games

__all__ = ["GENERATOR", "fuzzed_games"]

GENERATOR = {"seed": 0, "games_per_type": 2, "size": "small"}


def fuzzed_games() -> GameSet:
    """Twelve small generated games."""
    return open_games("generated", split="train", generator=GENERATOR)
