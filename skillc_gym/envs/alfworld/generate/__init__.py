"""New houses of the six task types, in upstream's own file format."""

from __future__ import annotations

from skillc_gym.envs.alfworld.experts.planner import proved_by_planner, proved_by_upstream
from skillc_gym.envs.alfworld.generate.conventions import convention_skills, skill_of_game
from skillc_gym.envs.alfworld.generate.games import GeneratedGames
from skillc_gym.envs.alfworld.generate.house import SCENES

__all__ = ["SCENES", "GeneratedGames", "convention_skills", "proved_by_planner", "proved_by_upstream", "skill_of_game"]
