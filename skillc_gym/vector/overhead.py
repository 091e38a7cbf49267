"""What the grouping itself costs: a vector of environments that do nothing."""

from __future__ import annotations

import time
from typing import Any

import gymnasium

from skillc_gym.spaces import Unicode
from skillc_gym.vector.paired import PairedVectorEnv


class _Idle(gymnasium.Env[str, str]):
    """Answers at once."""

    observation_space = action_space = Unicode(100)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        return "ready", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        # As wide as ALFWorld's info.
        words = {"task_id": "t", "task_type": "k", "goal": "g", "admissible_commands": ["look"]}
        return "ready", 0.0, False, False, {**words, "won": 0.0, "task_score": 0.0, "action_valid": True}


def measure_overhead(num_groups: int = 16, group_size: int = 8, steps: int = 200) -> dict[str, float]:
    """Measures the time that :class:`PairedVectorEnv` adds to its members' own steps.

    Args:
        num_groups: Number of groups.
        group_size: Members per group.
        steps: Vector steps to time.

    Returns:
        Microseconds per member and step: ``vector`` (all of it), ``members`` (the members in a bare loop) and
        ``overhead`` (the difference).
    """
    groups = PairedVectorEnv(_Idle, num_groups, group_size)
    groups.reset(seed=0)
    actions = ["look"] * groups.num_envs
    begin = time.perf_counter()
    for _ in range(steps):
        groups.step(actions)
    middle = time.perf_counter()
    for _ in range(steps):
        for env in groups.envs:
            env.step("look")
    scale = 1e6 / (steps * groups.num_envs)
    vector, members = (middle - begin) * scale, (time.perf_counter() - middle) * scale
    return {"vector": vector, "members": members, "overhead": vector - members}
