"""ProceduralCurriculum: generated games become harder as the agent succeeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import gymnasium
import numpy as np
from gymnasium.utils import RecordConstructorArgs

from skillc_gym.curricula.difficulty import DifficultyCurriculum

__all__ = ["ProceduralCurriculum"]


class ProceduralCurriculum(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """At each reset plays a task that a `DifficultyCurriculum` proposes, and tells it at the end how it went.

    A ``task_id`` given in ``options`` is respected and counted as well. An episode that is left unfinished does not
    count. All draws come from the environment's seed; the curriculum itself goes on over seeds.

    Args:
        env: An environment with generated games of several difficulties.
        curriculum: The curriculum, or the keyword arguments of one over the environment's games.

    Raises:
        ConfigError: If the games tell no difficulty, or an option is out of range.

    Examples:
        >>> env = gymnasium.make("skillc/ALFWorld-v0", data="generated", generator={"difficulty": [0, 0.5, 1]})
        >>> env = ProceduralCurriculum(env, {"target": 0.6})
        >>> observation, info = env.reset(seed=0)
    """

    def __init__(
        self, env: gymnasium.Env[Any, Any], curriculum: DifficultyCurriculum | Mapping[str, Any] | None = None
    ) -> None:
        if not isinstance(curriculum, DifficultyCurriculum):
            curriculum = DifficultyCurriculum.of(env, **(curriculum or {}))
        RecordConstructorArgs.__init__(self, _disable_deepcopy=True, curriculum=asdict(curriculum.options))
        gymnasium.Wrapper.__init__(self, env)
        self.curriculum = curriculum
        self._draws: np.random.Generator | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Starts an episode of the curriculum's choice, unless ``options`` name the task."""
        if seed is not None:
            # Its own stream: the environment's starts over at this seed.
            self._draws = np.random.default_rng([seed, 2])
        elif self._draws is None:
            self._draws = np.random.default_rng(int(self.np_random.integers(2**63)))
        proposed = self.curriculum.propose(1, self._draws)[0]
        return self.env.reset(seed=seed, options={"task_id": proposed, **(options or {})})

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Steps; the curriculum learns how an episode ended."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        if terminated or truncated:
            self.curriculum.update(info["task_id"], float(info["won"]))
        return observation, reward, terminated, truncated, info
