"""What an entry is worth: scores and updates of the skill-augmented methods, as pure functions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from trainers.advantages import FloatArray
from trainers.memory.bank import Entry


def moving_utility(utility: float, credit: float, rate: float) -> float:
    """``(1 - rate) u + rate credit``: D2Skill with rate 0.5, RetroAgent and Skill1 with 0.05."""
    return (1.0 - rate) * utility + rate * credit


def exploration_bonus(total: int, uses: int) -> float:
    """``sqrt(ln(1 + N) / (1 + n))`` of D2Skill (arXiv 2603.28716), of N uses of all entries and n of this one."""
    return math.sqrt(math.log1p(total) / (1 + uses))


def upper_confidence(entry: Entry, total: int, scale: float = 0.05) -> float:
    """Utility plus ``scale`` times :func:`exploration_bonus`: what D2Skill and Skill1 rank and evict by."""
    return entry.utility + scale * exploration_bonus(total, entry.uses)


def d2skill_score(similarity: float, entry: Entry, total: int) -> float:
    """``0.1 sim + 0.9 (u + 0.05 bonus)`` of D2Skill (arXiv 2603.28716)."""
    return 0.1 * similarity + 0.9 * upper_confidence(entry, total)


def retroagent_score(similarity: float, entry: Entry, total: int, alpha: float = 0.7, scale: float = 1.0) -> float:
    """``alpha sim + (1 - alpha) (u + scale sqrt(ln N / n))`` of RetroAgent (arXiv 2603.08561).

    An entry never used counts as used once, and ``ln N`` is 0 before the first use, so the score is always finite.
    """
    bonus = math.sqrt(math.log(max(total, 1)) / max(entry.uses, 1))
    return alpha * similarity + (1.0 - alpha) * (entry.utility + scale * bonus)


def principle_score(entry: Entry) -> float:
    """``(s + 1) / (n + 2)`` of EvolveR (arXiv 2510.16079): s successes in n uses."""
    return (entry.wins + 1.0) / (entry.uses + 2.0)


def intrinsic_reward(progress: float, best: float) -> float:
    """``max(0, progress - best)`` of RetroAgent: the gain over the running best of its task."""
    return max(0.0, progress - best)


def hindsight_bonus(success: ArrayLike, task: Sequence[str], condition: ArrayLike) -> FloatArray:
    """``success_i - mean success of the task's skill-free rollouts`` of D2Skill (arXiv 2603.28716), for every rollout.

    Success (1 for a won episode), task and condition (True with skills) have length N; so has the result, float64[N],
    which is 0 where a task has no skill-free rollout.
    """
    won, tasks, shown = np.asarray(success, dtype=np.float64), np.asarray(task), np.asarray(condition, dtype=bool)
    bonus = np.zeros(len(tasks))
    for name in dict.fromkeys(task):
        own = tasks == name
        if (own & ~shown).any():
            bonus[own] = won[own] - won[own & ~shown].mean()
    return bonus
