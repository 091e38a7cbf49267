"""PlanShaping: rewards on the way, from how far the goal still is, without changing which policy is best."""

from __future__ import annotations

from typing import Any

import gymnasium
from gymnasium.utils import RecordConstructorArgs

from skillc_gym.envs.registry import description_of
from skillc_gym.errors import ConfigError, DeadEndError
from skillc_gym.lazy import load_reference
from skillc_gym.wrappers.skill_injection import require_no_autoreset

_DEAD_END = 100
"""Steps that a dead end counts as, more than any plan."""


class PlanShaping(gymnasium.Wrapper[str, Any, str, Any], RecordConstructorArgs):
    """Adds ``gamma * phi(s') - phi(s)`` to the reward, where ``phi`` is minus the length of the shortest plan, scaled.

    Potential-based shaping leaves the optimal policies unchanged (Ng, Harada and Russell 1999); ``phi`` of a won state
    is 0, and a state that nothing wins from counts as a hundred steps away. ``info["shaping"]`` holds the added part,
    so that the raw reward can be had back.

    Args:
        env: An environment whose description names a planner, such as ``skillc/ALFWorld-v0`` with the native engine.
        gamma: The learner's discount.
        scale: What one step of the plan is worth.

    Raises:
        ConfigError: ``gamma`` is outside (0, 1], or nothing plans in the environment.
    """

    def __init__(self, env: gymnasium.Env[str, Any], gamma: float = 1.0, scale: float = 0.05) -> None:
        RecordConstructorArgs.__init__(self, gamma=gamma, scale=scale)
        gymnasium.Wrapper.__init__(self, env)
        require_no_autoreset(env, "PlanShaping")
        if not 0 < gamma <= 1:
            raise ConfigError(f"PlanShaping(gamma=...) lies in (0, 1], got {gamma}")
        spec = description_of(env)
        if spec is None or not spec.planner:
            raise ConfigError(f"PlanShaping needs an environment whose EnvSpec names a planner; {env} has none")
        self.gamma, self.scale = gamma, scale
        self._plan = load_reference(spec.planner)
        self._potential = 0.0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Starts an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._potential = self._phi()
        return observation, {**info, "shaping": 0.0}

    def step(self, action: Any) -> tuple[str, Any, bool, bool, dict[str, Any]]:
        """Acts and adds the change of potential to the reward."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        before, self._potential = self._potential, self._phi()
        shaping = self.gamma * self._potential - before
        return observation, float(reward) + shaping, terminated, truncated, {**info, "shaping": shaping}

    def _phi(self) -> float:
        try:
            steps = len(self._plan(self))
        except DeadEndError:
            steps = _DEAD_END
        return -self.scale * steps
