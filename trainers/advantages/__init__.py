"""Credit-assignment schemes; a learner knows none of them.

A formula is a pure function and, as a :class:`Scheme`, the same formula with its options.
"""

from __future__ import annotations

from trainers.advantages.base import Advantages, RolloutBatch, Scheme, Signals, Values, per_rollout
from trainers.advantages.csca import Contrast, Csca, csca, relabelling_weights
from trainers.advantages.group_baselines import Grpo, grpo, raised_baseline, rloo
from trainers.advantages.grouping import FloatArray, whiten
from trainers.advantages.per_step import gae, gigpo
from trainers.base import Returns

__all__ = ["Advantages", "Contrast", "Csca", "FloatArray", "Grpo", "Returns", "RolloutBatch", "Scheme", "Signals"]
__all__ += ["Values", "csca", "gae", "gigpo", "grpo", "per_rollout", "raised_baseline"]
__all__ += ["relabelling_weights", "rloo", "whiten"]
