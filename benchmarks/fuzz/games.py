"""The generated games that the fuzzers of ALFWorld start from."""

from __future__ import annotations

from skillc_gym.envs.alfworld.data import GameSet, open_games

__all__ = ["GENERATOR", "fuzzed_games"]

GENERATOR = {"seed": 0, "games_per_type": 2, "size": "small"}


def fuzzed_games() -> GameSet:
    """Twelve small generated games."""
    return open_games("generated", split="train", generator=GENERATOR)
