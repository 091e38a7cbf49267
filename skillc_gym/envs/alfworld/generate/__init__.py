"""New houses of the six task types, in upstream's own file format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillc_gym.lazy import lazy_exports

if TYPE_CHECKING:
    from skillc_gym.envs.alfworld.generate.games import GeneratedGame, GeneratedGames, generate_game
    from skillc_gym.envs.alfworld.generate.house import SCENES
    from skillc_gym.envs.alfworld.generate.knobs import KNOBS, SIZES, Knobs
    from skillc_gym.envs.alfworld.generate.proofs import chosen, proved_by_planner, proved_by_upstream
    from skillc_gym.envs.alfworld.generate.recipe import difficulty_of
else:
    __getattr__, __dir__ = lazy_exports(__name__)

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
