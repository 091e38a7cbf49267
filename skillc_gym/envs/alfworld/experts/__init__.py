"""Players that need no learning."""

from typing import TYPE_CHECKING

from skillc_gym.lazy import lazy_exports

if TYPE_CHECKING:
    from skillc_gym.envs.alfworld.experts.explorer import Explorer
    from skillc_gym.envs.alfworld.experts.planner import Planner, shortest_plan
else:
    __getattr__, __dir__ = lazy_exports(__name__)

__all__ = ["Explorer", "Planner", "shortest_plan"]
