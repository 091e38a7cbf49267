"""Vector environments: groups of episodes that share a task."""

from skillc_gym.vector.collect import FinishedGroup, collect
from skillc_gym.vector.paired import PairedVectorEnv

__all__ = ["FinishedGroup", "PairedVectorEnv", "collect"]
