"""TextHistory: the last exchanges in one text, for agents that remember nothing themselves."""

from __future__ import annotations

from collections import deque
from typing import Any

import gymnasium
from gymnasium.utils import RecordConstructorArgs

from skillc_gym.errors import ConfigError
from skillc_gym.spaces import Unicode
from skillc_gym.wrappers.stack import text_space

__all__ = ["TextHistory"]


class TextHistory(gymnasium.Wrapper[str, Any, str, Any], RecordConstructorArgs):
    """Puts the first observation and the last few exchanges in front of the newest observation.

    The first observation is kept because it holds the task. Actions are shown as ``> command``.

    Args:
        env: A text environment.
        length: How many past exchanges (observation and action) to show.

    Raises:
        ConfigError: ``length`` is below 1, or the environment is not a text environment.
    """

    def __init__(self, env: gymnasium.Env[str, Any], length: int = 4) -> None:
        RecordConstructorArgs.__init__(self, length=length)
        gymnasium.Wrapper.__init__(self, env)
        if length < 1:
            raise ConfigError(f"TextHistory(length=...) shows at least 1 past exchange, got {length}")
        space = text_space(env, "observation_space", "TextHistory")
        room = (length + 2) * (space.max_length + 1) + length * _ROOM_FOR_ACTION
        self.observation_space = Unicode(room, min_length=space.min_length)
        self._first = self._last = ""
        self._exchanges: deque[str] = deque(maxlen=length)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Starts an episode; the first observation is unchanged."""
        self._first, info = self.env.reset(seed=seed, options=options)
        self._last = ""
        self._exchanges.clear()
        return self._first, info

    def step(self, action: Any) -> tuple[str, Any, bool, bool, dict[str, Any]]:
        """Acts; the observation is the history and what is new."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._exchanges.append("\n".join(part for part in (self._last, f"> {_shown(action, self.env)}") if part))
        self._last = observation
        return "\n".join([self._first, *self._exchanges, observation]), reward, terminated, truncated, info


_ROOM_FOR_ACTION = 4_100


def _shown(action: Any, env: gymnasium.Env[str, Any]) -> str:
    """The command behind an action, also where a wrapper further in numbers them; cut where it is absurdly long."""
    if isinstance(action, str):
        return action[: _ROOM_FOR_ACTION - 4]
    commands: Any = env.get_wrapper_attr("commands")
    return str(commands[int(action)])
