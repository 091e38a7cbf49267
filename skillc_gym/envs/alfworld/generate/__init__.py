"""New houses of the six task types, in upstream's own file format."""

from __future__ import annotations

from skillc_gym.envs.alfworld.generate.games import GeneratedGame, GeneratedGames, difficulty_of, generate_game
from skillc_gym.envs.alfworld.generate.house import SCENES
from skillc_gym.envs.alfworld.generate.knobs import KNOBS, SIZES, Knobs
from skillc_gym.envs.alfworld.generate.proofs import chosen, proved_by_planner, proved_by_upstream

__all__ = [
    "KNOBS",
    "SCENES",
    "SIZES",
    "GeneratedGame",
    "GeneratedGames",
    "Knobs",
    "chosen",
    "difficulty_of",
    "generate_game",
    "proved_by_planner",
    "proved_by_upstream",
]
