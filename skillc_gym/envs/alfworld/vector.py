"""Many ALFWorld games at once in one process: the fast counterpart of Gymnasium's SyncVectorEnv."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, SupportsIndex

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from skillc_gym.envs.alfworld.env import ALFWorldEnv
from skillc_gym.errors import ConfigError, MemberError
from skillc_gym.vector.columns import InfoColumns, info_columns

StepResult = tuple[tuple[str, ...], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]


class ALFWorldVectorEnv(SyncVectorEnv):
    """Plays ``num_envs`` games with the native engine; what ``gym.make_vec("skillc/ALFWorld-v0", num_envs=...)`` gives.

    Answers, seeds and autoresets are those of ``vectorization_mode="sync"``; there are no wrappers in between, and
    tasks, spaces and parsed games are shared. Observations are a tuple of str. ``infos`` is Gymnasium's dict of arrays
    with ``_key`` masks.

    Args:
        num_envs: Number of games.
        max_episode_steps: Steps after which an episode is truncated; None for no limit.
        autoreset_mode: When a game that has ended starts a new task: "NextStep", "SameStep" (the last observation and
            info are ``infos["final_obs"]`` and ``["final_info"]``), or "Disabled" for ``options={"reset_mask": ...}``.
        **env_kwargs: Arguments of :class:`~skillc_gym.envs.alfworld.env.ALFWorldEnv`.

    Raises:
        ConfigError: ``num_envs`` or ``max_episode_steps`` is below 1.

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
        if num_envs < 1 or (max_episode_steps is not None and max_episode_steps < 1):
            raise ConfigError(f"num_envs and max_episode_steps are at least 1, got {num_envs} and {max_episode_steps}")
        self.num_envs = num_envs
        self.max_episode_steps = max_episode_steps
        self.games = [ALFWorldEnv(**env_kwargs)]
        self.games += [self.games[0].copy() for _ in range(num_envs - 1)]
        self.envs: list[Any] = self.games  # what the base's call, get_attr, set_attr, render and generators ask
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {**self.games[0].metadata, "autoreset_mode": self.autoreset_mode}
        self.render_mode = self.games[0].render_mode
        self.single_observation_space = self.games[0].observation_space
        self.single_action_space = self.games[0].action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._steps = np.zeros(num_envs, np.int64)
        self._over = np.zeros(num_envs, np.bool_)
        self._waiting = np.ones(num_envs, np.bool_)
        self._observations: list[str] = []

    @property
    def task_ids(self) -> tuple[str, ...]:
        """The ids of all tasks of the split, sorted."""
        return self.games[0].task_ids

    def reset(
        self, *, seed: SupportsIndex | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[tuple[str, ...], dict[str, Any]]:
        """Starts every game, or those that a mask names: all of them, or none if one raises.

        Args:
            seed: An integer s seeds game i with s + i; or one per game.
            options: ``task_id`` for all games, or ``task_ids``, one per game (None: the game's generator chooses).
                ``reset_mask``: bool of shape (num_envs,).

        Raises:
            ConfigError: An option is not known, or has the wrong length.
        """
        mask, tasks = self._asked(options or {})
        seeds = _seeds(seed, self.num_envs)
        _require_length("seed", seeds, self.num_envs)
        observations = list(self._observations) or [""] * self.num_envs
        infos: list[dict[str, Any] | None] = [None] * self.num_envs
        self._waiting[mask] = True
        for i in np.flatnonzero(mask).tolist():
            observations[i], infos[i] = self.games[i].reset(seed=seeds[i], options={"task_id": tasks[i]})
        self._observations = observations
        self._steps[mask], self._over[mask], self._waiting[mask] = 0, False, False
        return tuple(observations), InfoColumns(info_columns, infos)

    def step(self, actions: Sequence[str]) -> StepResult:
        """Carries out one command per game; by default a game that had ended starts a new task instead, with reward 0.

        Raises:
            ResetNeeded: A game was not reset, raised before, or has ended where nothing starts it again.
            MemberError: Games raised. The others have been stepped all the same, and the error carries what came of it;
                those that raised wait for a reset.
        """
        if self._waiting.any():
            waiting = np.flatnonzero(self._waiting).tolist()
            raise ResetNeeded(f"Games {waiting} were not reset, or raised since: call reset() first.")
        if self.autoreset_mode is AutoresetMode.DISABLED and self._over.any():
            ended = np.flatnonzero(self._over).tolist()
            raise ResetNeeded(f"Games {ended} have ended: call reset(options={{'reset_mask': ...}}) for them first.")
        _require_length("actions", actions, self.num_envs)
        rewards, won = np.zeros(self.num_envs), np.zeros(self.num_envs, np.bool_)
        infos: list[dict[str, Any] | None] = [None] * self.num_envs
        raised: dict[int, Exception] = {}
        for i, (game, action, over) in enumerate(zip(self.games, actions, self._over.tolist(), strict=True)):
            try:
                if over:
                    self._observations[i], infos[i] = game.reset()
                else:
                    self._observations[i], rewards[i], won[i], _, infos[i] = game.step(action)
            except Exception as error:  # noqa: BLE001 - it is raised again once every game has been stepped
                raised[i] = error
        self._steps = np.where(self._over, 0, self._steps + 1)
        cut = np.zeros(self.num_envs, np.bool_)
        if self.max_episode_steps is not None:
            cut = self._steps >= self.max_episode_steps
        self._over = won | cut
        if self.autoreset_mode is AutoresetMode.SAME_STEP:
            self._start_again(infos, raised)
        result = tuple(self._observations), rewards, won, cut, InfoColumns(info_columns, infos)
        if raised:
            self._waiting[list(raised)] = True
            raise MemberError.of(raised, result, "Game {0}") from next(iter(raised.values()))
        return result

    def _start_again(self, infos: list[dict[str, Any] | None], raised: dict[int, Exception]) -> None:
        for i in np.flatnonzero(self._over).tolist():
            if i in raised:
                continue
            final = {"final_obs": self._observations[i], "final_info": infos[i]}
            try:
                self._observations[i], info = self.games[i].reset()
            except Exception as error:  # noqa: BLE001 - step raises it once every game has been stepped
                raised[i], infos[i] = error, final
            else:
                infos[i] = {**info, **final}
        self._steps[self._over], self._over = 0, np.zeros(self.num_envs, np.bool_)

    def _asked(self, options: dict[str, Any]) -> tuple[NDArray[np.bool_], list[str | None]]:
        if unknown := options.keys() - {"task_id", "task_ids", "reset_mask"}:
            raise ConfigError(
                f"Unknown reset options {sorted(unknown)}; the vector knows 'task_id', 'task_ids' and 'reset_mask'."
            )
        mask = np.asarray(options.get("reset_mask", np.ones(self.num_envs, np.bool_)), dtype=np.bool_)
        named, for_all = options.get("task_ids"), options.get("task_id")
        if named is not None and for_all is not None:
            raise ConfigError("Name one task for all games with 'task_id', or one per game with 'task_ids', not both.")
        tasks = [for_all] * self.num_envs if named is None else list(named)
        _require_length("reset_mask", mask, self.num_envs)
        _require_length("task_ids", tasks, self.num_envs)
        if not self._observations and not mask.all():
            raise ConfigError("The first reset starts every game; reset_mask comes after it.")
        return mask, tasks


def make_vector(
    num_envs: int = 1,
    *,
    vector_kwargs: Mapping[str, Any] | None = None,
    wrappers: Sequence[Callable[[Any], Any]] = (),
    autoreset_mode: AutoresetMode | str | None = None,
    **env_kwargs: Any,
) -> VectorEnv[Any, Any, Any]:
    """Makes the fast vector, or Gymnasium's where the games need wrappers or its way with observations."""
    asked: dict[str, Any] = {} if autoreset_mode is None else {"autoreset_mode": autoreset_mode}
    asked |= vector_kwargs or {}
    if not wrappers and asked.keys() <= {"autoreset_mode"}:
        return ALFWorldVectorEnv(num_envs, **asked, **env_kwargs)
    return gymnasium.make_vec("skillc/ALFWorld-v0", num_envs, "sync", asked, wrappers, **env_kwargs)


def _seeds(seed: SupportsIndex | Sequence[int | None] | None, count: int) -> list[int | None]:
    if seed is None:
        return [None] * count
    if isinstance(seed, SupportsIndex):
        return [operator.index(seed) + i for i in range(count)]
    return list(seed)


def _require_length(name: str, values: Any, length: int) -> None:
    if isinstance(values, str) or len(values) != length:
        raise ConfigError(f"{name} must hold one entry per game, {length}, got {values!r:.80}")
