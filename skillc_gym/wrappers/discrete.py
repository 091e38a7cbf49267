"""DiscreteCommands: a text environment's commands as numbered actions with a mask, for agents that choose by index."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import NDArray

from skillc_gym.errors import ConfigError

__all__ = ["DiscreteCommands", "commands_of_all_tasks"]


class DiscreteCommands(gymnasium.Wrapper[str, Any, str, Any], RecordConstructorArgs):
    """Numbers a fixed list of commands; the action is an index into it.

    ``info["action_mask"]`` (int8 of shape (n,), 1 for admissible) follows Gymnasium's convention;
    :meth:`action_masks` (bool) is what SB3-contrib's MaskablePPO asks for. Choosing a masked command is answered like
    any command that is not admissible.

    Args:
        env: A text environment whose ``info`` has ``admissible_commands``.
        commands: The commands in the order of their numbers; by default all commands of all tasks of the environment,
            sorted, which loads every task once: name a small game set, or give your own list.

    Raises:
        ConfigError: The list is empty or repeats itself; at a reset or step, if none of its commands is admissible.

    Examples:
        >>> env = DiscreteCommands(gymnasium.make("skillc/ALFWorld-v0", data="generated", task_types="pick",
        ...                                       generator={"games_per_type": 5}))
        >>> observation, info = env.reset(seed=0)
        >>> int(info["action_mask"].sum()) == len(info["admissible_commands"])
        True
    """

    def __init__(self, env: gymnasium.Env[str, Any], commands: Iterable[str] | None = None) -> None:
        given = None if commands is None else tuple(commands)
        RecordConstructorArgs.__init__(self, commands=given)
        gymnasium.Wrapper.__init__(self, env)
        self.commands = commands_of_all_tasks(env) if given is None else given
        if not self.commands or len(set(self.commands)) < len(self.commands):
            raise ConfigError(f"DiscreteCommands needs different commands, at least one; got {len(self.commands)}")
        self._index = {command: index for index, command in enumerate(self.commands)}
        self._mask = np.zeros(len(self.commands), np.int8)
        self.action_space = Discrete(len(self.commands))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Starts an episode; ``info`` gains ``action_mask``."""
        observation, info = self.env.reset(seed=seed, options=options)
        return observation, self._masked(info)

    def step(self, action: int) -> tuple[str, Any, bool, bool, dict[str, Any]]:
        """Carries out the command of that number."""
        if not self.action_space.contains(np.int64(action)):
            raise ConfigError(f"Actions are 0..{len(self.commands) - 1}, got {action!r}")
        observation, reward, terminated, truncated, info = self.env.step(self.commands[int(action)])
        return observation, reward, terminated, truncated, self._masked(info)

    def action_masks(self) -> NDArray[np.bool_]:
        """Which commands are admissible now: bool of shape (n,)."""
        return self._mask.astype(bool)

    def _masked(self, info: dict[str, Any]) -> dict[str, Any]:
        self._mask = np.zeros(len(self.commands), np.int8)
        self._mask[[self._index[name] for name in info["admissible_commands"] if name in self._index]] = 1
        if not self._mask.any():
            raise ConfigError(f"None of the {len(self.commands)} commands is admissible in {info.get('task_id')!r}")
        return {**info, "action_mask": self._mask}


def commands_of_all_tasks(env: gymnasium.Env[Any, Any]) -> tuple[str, ...]:
    """Every command that can become admissible in any task of ``skillc/ALFWorld-v0``, sorted.

    Raises:
        ConfigError: The environment has no game set.
    """
    games = getattr(env.unwrapped, "games", None)
    if games is None:
        raise ConfigError(f"{env} has no list of all commands; give DiscreteCommands(env, commands=[...])")
    return tuple(sorted({command for task_id in games.task_ids for command in games.load(task_id).commands}))
