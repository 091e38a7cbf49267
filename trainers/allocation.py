"""How many rollouts of a group see the skill: pure rules."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from statistics import fmean
from typing import Any, Literal, NamedTuple

from skillc_gym.errors import ConfigError
from trainers.stats import wilson

__all__ = ["Difficulty", "DifficultyRouter", "Trials", "annealed_allocation", "fading_allocation", "gap_lower_bound"]
__all__ += ["signal_allocation", "skill_needed", "value_allocation"]


def fading_allocation(gap: float, group_size: int, full_gap: float = 0.2) -> int:
    """``n+ = max(1, round(floor(G / 2) * clip(gap / full_gap, 0, 1)))``, halves rounded up.

    One rollout always sees the skill, so that the gap stays known and following the skill stays practised. The gap is
    success with the skill minus success without; at ``full_gap`` half of the group sees it. At least 2 rollouts.
    """
    if group_size < 2 or not full_gap > 0.0:
        raise ConfigError(
            f"A fading allocation needs group_size >= 2 and full_gap > 0, got {group_size} and {full_gap}."
        )
    half = group_size // 2
    return min(half, max(1, math.floor(half * min(max(gap / full_gap, 0.0), 1.0) + 0.5)))


def signal_allocation(p_with: float, p_without: float, group_size: int, kappa: float = 1.0) -> int:
    """``n+ = clip(G kappa s1 / (kappa s1 + s0), 1, G - 1)`` with ``s = sqrt(p (1 - p))``, rounded half up.

    A branch that always wins or always loses has no gradient; the branch whose outcome varies gets the rollouts
    (Neyman's allocation). Where neither varies the group is split by ``kappa`` alone: how much practice with the skill
    is worth to the policy without it. Rates lie in [0, 1], and a group has at least 2 rollouts.
    """
    _check_rates("signal_allocation", p_with, p_without, group_size)
    if not kappa > 0.0:
        raise ConfigError(f"signal_allocation needs kappa > 0, got {kappa}")
    s1, s0 = (math.sqrt(p * (1.0 - p)) for p in (p_with, p_without))
    share = kappa * s1 / (kappa * s1 + s0) if s1 + s0 > 0.0 else kappa / (kappa + 1.0)
    return _both_conditions(share, group_size)


def value_allocation(p_with: float, p_without: float, group_size: int) -> int:
    """``n+ = clip(G u / (u + v), 1, G - 1)``, rounded half up: ``u = p1 (1 - p0)``, ``v = sqrt(p0 (1 - p0))``.

    ``u`` is how often a rollout with the skill gives an episode to imitate that the policy without it would not have
    found, ``v`` how much a skill-free outcome varies, which is what its policy gradient has to go by. Rates lie in
    [0, 1], and a group has at least 2 rollouts.
    """
    _check_rates("value_allocation", p_with, p_without, group_size)
    imitated, practised = p_with * (1.0 - p_without), math.sqrt(p_without * (1.0 - p_without))
    share = imitated / (imitated + practised) if imitated + practised > 0.0 else 0.0
    return _both_conditions(share, group_size)


def annealed_allocation(p_with: float, p_without: float, group_size: int) -> int:
    """``n+ = clip(G (1 - alpha), 1, G - 1)`` with ``alpha = clip(p0 / p1, 0, 1)``, rounded half up.

    The share of rollouts without the skill is what the policy already reaches without it, of what it reaches with it.
    Where the skill never wins, alpha is 1. Rates lie in [0, 1], and a group has at least 2 rollouts.
    """
    _check_rates("annealed_allocation", p_with, p_without, group_size)
    alpha = p_without / p_with if p_without < p_with else 1.0
    return _both_conditions(1.0 - alpha, group_size)


def _check_rates(rule: str, p_with: float, p_without: float, group_size: int) -> None:
    if not (0.0 <= p_with <= 1.0 and 0.0 <= p_without <= 1.0 and group_size >= 2):
        raise ConfigError(
            f"{rule} needs rates in [0, 1] and at least 2 rollouts per group; got p_with={p_with}, "
            f"p_without={p_without}, group_size={group_size}"
        )


def _both_conditions(share: float, group_size: int) -> int:
    """A share of a group, halves rounded up, of which at least one rollout has each condition."""
    return min(max(math.floor(group_size * share + 0.5), 1), group_size - 1)


class Trials(NamedTuple):
    """Rollouts of one condition and how many of them succeeded; decayed counts may be fractional."""

    wins: float
    tries: float


def skill_needed(injected: Trials, plain: Trials, group_size: int, level: float = 0.95) -> bool:
    """Whether skill-free success is surely below ``1 / G`` and the skill surely helps.

    The Wilson upper bound of skill-free success at the training temperature must lie below ``1 / group_size`` (a group
    without the skill then most likely sees no success at all), and the lower bound of the gap above 0; ``level`` is of
    both, two-sided. Without trials of both conditions nothing is sure, so nothing is shown.
    """
    if not injected.tries or not plain.tries:
        return False
    return wilson(*plain, level).high < 1.0 / group_size and gap_lower_bound(injected, plain, level) > 0.0


def gap_lower_bound(injected: Trials, plain: Trials, level: float = 0.95) -> float:
    """Lower end of Newcombe's interval for the difference of two independent rates, of both of which there are trials.

    Source: Newcombe 1998, Statistics in Medicine 17, 873-890, method 10.
    """
    low, high = wilson(*injected, level).low, wilson(*plain, level).high
    first, second = injected.wins / injected.tries, plain.wins / plain.tries
    return first - second - math.hypot(first - low, high - second)


Difficulty = Literal["hard", "medium", "easy"]


class DifficultyRouter:
    """A type without any success is hard; one above the mean of the successes above 0 over some updates is easy.

    Source: Skill0.5, arXiv 2605.28424. The paper routes each task by the eight rollouts just played, and then plays
    eight more; here a type is routed by its rollouts of the last update in which it came up. Types not seen yet are
    medium. ``window`` is how many updates' means make the threshold.
    """

    def __init__(self, window: int = 5) -> None:
        self._means: deque[float] = deque(maxlen=window)
        self._rates: dict[str, float] = {}

    def observe(self, rates: Mapping[str, float]) -> None:
        """Takes in the success of each type of an update, among rollouts with their usual prompt."""
        self._rates.update(rates)
        above = [rate for _, rate in sorted(rates.items()) if rate > 0]
        if above:
            self._means.append(fmean(above))

    def level(self, task_type: str) -> Difficulty:
        """How hard a type is now."""
        rate = self._rates.get(task_type)
        if rate is None:
            return "medium"
        if rate == 0.0:
            return "hard"
        return "easy" if self._means and rate > fmean(self._means) else "medium"

    def state_dict(self) -> dict[str, Any]:
        """What it has seen, as JSON-able values."""
        return {"means": list(self._means), "rates": dict(sorted(self._rates.items()))}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores what it had seen."""
        self._means.clear()
        self._means.extend(float(mean) for mean in state["means"])
        self._rates = {kind: float(rate) for kind, rate in state["rates"].items()}
