"""ALFWorld, natively: household tasks in text with upstream's answers."""

from typing import TYPE_CHECKING

from skillc_gym.lazy import lazy_exports

if TYPE_CHECKING:
    from skillc_gym.envs.alfworld.env import ALFWorldEnv
    from skillc_gym.envs.alfworld.tasks import SHORT_NAMES, SPLITS, TASK_TYPES
    from skillc_gym.envs.alfworld.vector import ALFWorldVectorEnv
else:
    __getattr__, __dir__ = lazy_exports(__name__)

__all__ = ["SHORT_NAMES", "SPLITS", "TASK_TYPES", "ALFWorldEnv", "ALFWorldVectorEnv"]
