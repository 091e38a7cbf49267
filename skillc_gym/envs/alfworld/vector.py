"""Many ALFWorld games at once in one process: Gymnasium's SyncVectorEnv without the wrappers in between."""

from __future__ import annotations

from typing import Any

import gymnasium
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.wrappers import TimeLimit

from skillc_gym.envs.alfworld.env import ALFWorldEnv
from skillc_gym.envs.alfworld.spec import ALFWORLD
from skillc_gym.values import require_whole
from skillc_gym.vector.columns import InfoColumns, info_columns


class ALFWorldVectorEnv(SyncVectorEnv):
    """Plays ``num_envs`` games; what ``gym.make_vec("skillc/ALFWorld-v0", num_envs=...)`` gives.

    Answers, seeds and autoresets are those of ``vectorization_mode="sync"``; tasks, spaces and parsed games are shared,
    and columns of ``infos`` are made where somebody looks. Observations are a tuple of str.

    Args:
        num_envs: Number of games.
        max_episode_steps: Steps after which an episode is truncated; None for no limit.
        autoreset_mode: When a game that has ended starts a new task, as in Gymnasium.
        **env_kwargs: Arguments of :class:`~skillc_gym.envs.alfworld.env.ALFWorldEnv`.

    Examples:
        >>> envs = ALFWorldVectorEnv(num_envs=3, data="generated", max_episode_steps=50)
        >>> observations, infos = envs.reset(seed=0)
        >>> observations, rewards, terminations, truncations, infos = envs.step(["look"] * 3)
    """

    def __init__(
        self,
        num_envs: int = 1,
        *,
        max_episode_steps: int | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        **env_kwargs: Any,
    ) -> None:
        num_envs = require_whole("num_envs", num_envs, 1)
        first = ALFWorldEnv(**env_kwargs)
        games: list[Any] = [first, *(first.copy() for _ in range(num_envs - 1))]
        if max_episode_steps is not None:
            games = [TimeLimit(game, max_episode_steps) for game in games]
        makers = [lambda game=game: game for game in games]
        super().__init__(makers, copy=False, autoreset_mode=autoreset_mode)  # texts need no copy

    def _add_info(self, vector_infos: dict[str, Any], env_info: dict[str, Any], env_num: int) -> dict[str, Any]:
        """Keeps a game's info for the columns; a game that ended tells its last one first."""
        if not isinstance(vector_infos, InfoColumns):
            vector_infos = InfoColumns(info_columns, [None] * self.num_envs)
        vector_infos.tell(env_num, env_info)
        return vector_infos


def make_vector(
    num_envs: int = 1,
    *,
    max_episode_steps: int | None = None,
    disable_env_checker: bool | None = None,
    autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    **env_kwargs: Any,
) -> VectorEnv[Any, Any, Any]:
    """Makes the fast vector, or Gymnasium's where its checker is asked for.

    As in ``gymnasium.make``, a ``max_episode_steps`` of None is the registered limit, and -1 none.
    """
    if disable_env_checker is False:
        env_kwargs |= {"max_episode_steps": max_episode_steps, "disable_env_checker": False}
        return gymnasium.make_vec(ALFWORLD.id, num_envs, "sync", {"autoreset_mode": autoreset_mode}, **env_kwargs)
    limit = ALFWORLD.max_episode_steps if max_episode_steps is None else max_episode_steps
    limit = None if limit == -1 else limit
    return ALFWorldVectorEnv(num_envs, max_episode_steps=limit, autoreset_mode=autoreset_mode, **env_kwargs)
