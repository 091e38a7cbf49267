"""Whitening of advantages over all tokens of an update, as PPO does it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trainers.advantages.grouping import FloatArray, normalise

__all__ = ["whiten"]


def whiten(advantages: Sequence[FloatArray], eps: float = 1e-8) -> list[FloatArray]:
    """Shifts and scales ragged advantages to mean 0 and variance 1 over all their entries together.

    Args:
        advantages: One float64 array per rollout, of any lengths.
        eps: Added to the standard deviation.

    Returns:
        Arrays of the same lengths; exactly 0 where all entries are equal.
    """
    flat = normalise(np.concatenate([*advantages, np.zeros(0)]), eps)
    return np.split(flat, np.cumsum([own.size for own in advantages])[:-1]) if advantages else []
