"""Show the skill only where its absence leaves a group blind: the study's variant ``gate``."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import NamedTuple

from skillc_gym.errors import ConfigError

__all__ = ["Trials", "gap_lower_bound", "skill_needed", "wilson_bounds"]


class Trials(NamedTuple):
    """Rollouts of one condition and how many of them succeeded; decayed counts may be fractional."""

    wins: float
    tries: float


def skill_needed(injected: Trials, plain: Trials, group_size: int, level: float = 0.95) -> bool:
    """Whether skill-free success is surely below ``1 / G`` and the skill surely helps.

    The Wilson upper bound of skill-free success at the training temperature must lie below ``1 / group_size`` (a group
    without the skill then most likely sees no success at all), and the lower bound of the gap above 0. Without trials
    of both conditions nothing is sure, so nothing is shown.

    Args:
        injected: Rollouts with the skill.
        plain: Rollouts without it.
        group_size: Rollouts per group, G.
        level: Two-sided confidence level of every interval.

    Raises:
        ConfigError: Counts that are no counts, or a level outside (0, 1).
    """
    upper = wilson_bounds(*plain, level)[1]
    return upper < 1.0 / group_size and gap_lower_bound(injected, plain, level) > 0.0


def gap_lower_bound(injected: Trials, plain: Trials, level: float = 0.95) -> float:
    """Lower end of Newcombe's interval for the difference of two independent rates; -1 without trials of both.

    Source: Newcombe 1998, Statistics in Medicine 17, 873-890, method 10.
    """
    low, _ = wilson_bounds(*injected, level)
    _, high = wilson_bounds(*plain, level)
    if not injected.tries or not plain.tries:
        return -1.0
    first, second = injected.wins / injected.tries, plain.wins / plain.tries
    return first - second - math.hypot(first - low, high - second)


def wilson_bounds(wins: float, tries: float, level: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval of a rate from possibly fractional counts; (0, 1) without trials.

    Raises:
        ConfigError: Not ``0 <= wins <= tries``, or a level outside (0, 1).
    """
    if not 0.0 <= wins <= tries or not math.isfinite(tries) or not 0.0 < level < 1.0:
        raise ConfigError(f"A rate needs 0 <= wins <= tries and a level in (0, 1), got {wins} of {tries} at {level}")
    if tries == 0.0:
        return 0.0, 1.0
    z2 = NormalDist().inv_cdf((1.0 + level) / 2.0) ** 2
    rate, scale = wins / tries, 1.0 + z2 / tries
    centre = (rate + z2 / (2.0 * tries)) / scale
    half = math.sqrt(z2 * (rate * (1.0 - rate) / tries + z2 / (4.0 * tries * tries))) / scale
    return max(0.0, centre - half), min(1.0, centre + half)
