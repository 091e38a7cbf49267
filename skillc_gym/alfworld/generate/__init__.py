"""New houses of the six task types, in upstream's own file format."""

from __future__ import annotations

from skillc_gym.alfworld.generate.games import GeneratedGame, GeneratedGames, generate_game
from skillc_gym.alfworld.generate.sizes import SIZES

__all__ = ["SIZES", "GeneratedGame", "GeneratedGames", "generate_game"]
