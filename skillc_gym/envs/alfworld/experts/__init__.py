"""Players that need no learning."""

from skillc_gym.envs.alfworld.experts.explorer import Explorer
from skillc_gym.envs.alfworld.experts.planner import Planner, shortest_plan

__all__ = ["Explorer", "Planner", "shortest_plan"]
