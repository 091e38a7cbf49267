"""Credit-assignment schemes, one small file each; a learner knows none of them.

Each file holds a formula as a pure function and, as a :class:`Scheme`, the same formula with its options.
"""

from __future__ import annotations

from trainers.advantages.base import Advantages, Scheme, Values, per_rollout
from trainers.advantages.batch import EpisodeLike, RolloutBatch, Signals
from trainers.advantages.contrast import Contrast
from trainers.advantages.csca import Csca, Streams, csca, csca_streams
from trainers.advantages.gae import gae
from trainers.advantages.gigpo import gigpo
from trainers.advantages.grouping import FloatArray
from trainers.advantages.grpo import Grpo, grpo
from trainers.advantages.raised_baseline import raised_baseline
from trainers.advantages.relabelling import relabelling_weights
from trainers.advantages.rloo import rloo
from trainers.advantages.whitening import whiten
from trainers.base import Returns

__all__ = [
    "Advantages",
    "Contrast",
    "Csca",
    "EpisodeLike",
    "FloatArray",
    "Grpo",
    "Returns",
    "RolloutBatch",
    "Scheme",
    "Signals",
    "Streams",
    "Values",
    "csca",
    "csca_streams",
    "gae",
    "gigpo",
    "grpo",
    "per_rollout",
    "raised_baseline",
    "relabelling_weights",
    "rloo",
    "whiten",
]
