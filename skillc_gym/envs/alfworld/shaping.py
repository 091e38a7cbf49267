"""PlanShaping: rewards on the way, from how far the goal still is, without changing which policy is best."""

from __future__ import annotations

from typing import Any

import gymnasium
from gymnasium.utils import RecordConstructorArgs

from skillc_gym.envs.alfworld.experts.planner import Planner, planner_of
from skillc_gym.errors import ConfigError

__all__ = ["PlanShaping"]


class PlanShaping(gymnasium.Wrapper[str, Any, str, Any], RecordConstructorArgs):
    """Adds ``gamma * phi(s') - phi(s)`` to the reward, where ``phi`` is minus the length of the shortest plan, scaled.

    Potential-based shaping leaves the optimal policies unchanged (Ng, Harada and Russell 1999); ``phi`` of a won state
    is 0. ``info["shaping"]`` holds the added part, so that the raw reward can be had back.

    Args:
        env: ``skillc/ALFWorld-v0`` with the native engine.
        gamma: The learner's discount.
        scale: What one step of the plan is worth.

    Raises:
        ConfigError: ``gamma`` is outside (0, 1].
    """

    def __init__(self, env: gymnasium.Env[str, Any], gamma: float = 1.0, scale: float = 0.05) -> None:
        RecordConstructorArgs.__init__(self, gamma=gamma, scale=scale)
        gymnasium.Wrapper.__init__(self, env)
        if not 0 < gamma <= 1:
            raise ConfigError(f"PlanShaping(gamma=...) lies in (0, 1], got {gamma}")
        self.gamma = gamma
        self.scale = scale
        self._planner: Planner | None = None
        self._potential = 0.0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Starts an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._planner = planner_of(self)
        self._potential = self._phi(self._planner)
        return observation, {**info, "shaping": 0.0}

    def step(self, action: Any) -> tuple[str, Any, bool, bool, dict[str, Any]]:
        """Acts and adds the change of potential to the reward."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        if self._planner is None:  # after unpickling
            self._planner = planner_of(self)
        before, self._potential = self._potential, self._phi(self._planner)
        shaping = self.gamma * self._potential - before
        return observation, float(reward) + shaping, terminated, truncated, {**info, "shaping": shaping}

    def __getstate__(self) -> dict[str, Any]:
        # Planners hold what was indexed of a game, which is found again faster than it is written down.
        return {**self.__dict__, "_planner": None}

    def _phi(self, planner: Planner) -> float:
        core: Any = self.env.unwrapped
        return -self.scale * len(planner.plan(core.snapshot().state.engine))
