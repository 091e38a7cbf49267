"""Which skill-injected episodes are worth learning without the skill: the study's variant ``relabelling``."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from trainers.advantages.grouping import FloatArray, finite_vector, flag_vector, group_indices, group_keys, mean

__all__ = ["relabelling_weights"]


def relabelling_weights(
    success: ArrayLike,
    task: Sequence[Hashable],
    condition: ArrayLike,
    contrast: ArrayLike,
    *,
    discounted: bool = True,
) -> FloatArray:
    """``w(k) (1 - b0)`` for successful skill-injected rollouts, 0 for all others.

    Such an episode is trained on a second time, behind the prompt without the skill. ``b0`` is the skill-free success
    of its task in this update (0 where no rollout was skill-free) and ``w(k)`` the smoothed contrast of its task type,
    cut at 0, so the term fades as the gap closes.

    Args:
        success: 1 where the episode succeeded, [N].
        task: Which task each rollout belongs to, N keys.
        condition: 1 with the skill, 0 without, [N].
        contrast: Smoothed contrast of each rollout's task type, float[N].
        discounted: Whether the factor ``1 - b0`` is there.

    Returns:
        float64[N], never negative.

    Raises:
        ConfigError: Lengths differ or a flag is not 0 or 1.
    """
    gap = finite_vector("contrast", contrast)
    won = flag_vector("success", success, gap.size)
    with_skill = flag_vector("condition", condition, gap.size)
    weight = np.zeros_like(gap)
    for rows in group_indices(group_keys(task, gap.size)):
        plain = won[rows][~with_skill[rows]].astype(np.float64).tolist()
        chosen = rows[with_skill[rows] & won[rows]]
        weight[chosen] = np.maximum(gap[chosen], 0.0) * (1.0 - (mean(plain) if plain and discounted else 0.0))
    return weight
