"""TypeStatistics: success and length of the latest episodes, by task type and condition."""

from __future__ import annotations

from collections import defaultdict, deque
from functools import partial
from typing import Any

import gymnasium
from gymnasium.utils import RecordConstructorArgs

from skillc_gym.errors import ConfigError

__all__ = ["TypeStatistics"]


class TypeStatistics(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Counts finished episodes by task type and condition; changes nothing else.

    Args:
        env: An environment whose ``info`` has ``task_type`` and ``won``.
        window: How many of the latest episodes of each kind count.

    Raises:
        ConfigError: ``window`` is below 1.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], window: int = 100) -> None:
        RecordConstructorArgs.__init__(self, window=window)
        gymnasium.Wrapper.__init__(self, env)
        if window < 1:
            raise ConfigError(f"TypeStatistics(window=...) counts at least 1 episode, got {window}")
        self._episodes: dict[tuple[str, int], deque[tuple[float, int]]] = defaultdict(partial(deque, maxlen=window))
        self._steps = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Starts an episode; one that was not finished is not counted."""
        self._steps = 0
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Acts; counts the episode when it ends."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._steps += 1
        if terminated or truncated:
            kind = (str(info["task_type"]), int(info.get("condition", 0)))
            self._episodes[kind].append((float(info["won"]), self._steps))
        return observation, reward, terminated, truncated, info

    def by_type(self) -> dict[tuple[str, int], dict[str, float]]:
        """Per (task type, condition): ``episodes``, ``success`` (rate) and ``steps`` (mean length)."""
        return {
            kind: {
                "episodes": float(len(ended)),
                "success": sum(won for won, _ in ended) / len(ended),
                "steps": sum(steps for _, steps in ended) / len(ended),
            }
            for kind, ended in sorted(self._episodes.items())
        }
