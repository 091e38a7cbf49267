"""ALFWorld as a Gymnasium environment."""

from __future__ import annotations

import copy
import html
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from numpy.typing import NDArray

from skillc_gym.envs.alfworld.data.games import GameSet, open_games
from skillc_gym.envs.alfworld.engine.game import MAX_ANSWER, MAX_COMMAND
from skillc_gym.envs.alfworld.engine.start import Engine, NativeStarter, Starter
from skillc_gym.envs.alfworld.engine.world import World
from skillc_gym.errors import ConfigError, unknown_name
from skillc_gym.spaces import Unicode

if TYPE_CHECKING:
    from skillc_gym.envs.alfworld.render.house_view import HouseView

__all__ = ["ALFWorldEnv", "Snapshot"]

ENGINES = ("native", "textworld")

Info = dict[str, Any]


class Snapshot(NamedTuple):
    """An environment's moment: the task, its state and the last exchange. Small, immutable and picklable.

    The step count of a `TimeLimit` and the random generator that chooses tasks are not part of it. ``naming`` says how
    things are numbered, under domain randomisation.
    """

    task_id: str
    state: Any
    action: str | None
    observation: str
    action_valid: bool
    naming: int | None = None


class ALFWorldEnv(gymnasium.Env[str, str]):
    """Household tasks in text, with upstream's answers byte for byte.

    The observation is the game's feedback; the action is a command such as ``take mug 1 from desk 2``. A command that
    is not admissible answers ``Nothing happens.``, costs a step and is never an error. The reward is 1.0 on winning,
    else 0.0; winning terminates.

    ``info`` always has: task_id, task_type (full name), goal (the task without "Your task is to:"),
    admissible_commands (sorted), won (0.0 or 1.0), task_score (the same), action_valid (was the command admissible;
    True at reset).

    Args:
        split: "train", "valid_seen", "valid_unseen" or "valid_train".
        data: A folder or archive in upstream's layout, "generated", or None for ALFWORLD_DATA or ~/.cache/alfworld.
        task_types: Full or short names of the task types to play; None for all six.
        engine: "native", or "textworld" for upstream itself in a process of its own (needs the extra ``alfworld``).
        generator: Options of the generator, with data="generated" only.
        domain_randomization: Number the things of the house in another order in each episode, as upstream does in
            training if asked; the order follows from the environment's seed.
        render_mode: "ansi" or "html" to draw the house as the agent knows it, with the last exchange or the whole
            transcript; None otherwise.

    Raises:
        UnknownNameError: If the split, a task type or the engine does not exist.
        MissingDataError: If there are no games; the message says where it looked and what to do.

    Example:
        >>> env = gymnasium.make("skillc/ALFWorld-v0", split="valid_unseen")                 # doctest: +SKIP
        >>> observation, info = env.reset(seed=0)                                            # doctest: +SKIP
        >>> observation, reward, won, cut, info = env.step(info["admissible_commands"][0])   # doctest: +SKIP
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi", "html"], "render_fps": 4}  # type: ignore[misc]

    def __init__(
        self,
        *,
        split: str = "train",
        data: str | os.PathLike[str] | None = None,
        task_types: Iterable[str] | str | None = None,
        engine: str = "native",
        generator: Mapping[str, Any] | None = None,
        domain_randomization: bool = False,
        render_mode: str | None = None,
    ) -> None:
        if engine not in ENGINES:
            raise unknown_name("engine", engine, ENGINES)
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise unknown_name("render mode", render_mode, self.metadata["render_modes"], "Leave it out for none.")
        self.games = open_games(data, split=split, task_types=task_types, generator=generator)
        self.observation_space = Unicode(MAX_ANSWER)
        self.action_space = Unicode(MAX_COMMAND)
        self.render_mode = render_mode
        self.domain_randomization = domain_randomization
        self._start_engine = NativeStarter(self.games) if engine == "native" else _upstream_starter(self.games)
        self._engine: Engine | None = None
        self._task_id = self._task_type = self._goal = ""
        self._naming: int | None = None
        self._action: str | None = None
        self._observation = ""
        self._action_valid = True
        self._view: HouseView | None = None

    def twin(self) -> ALFWorldEnv:
        """Returns another environment on the same games, which shares what can be shared; it is not reset yet."""
        twin = copy.copy(self)
        twin._engine, twin._np_random, twin._np_random_seed, twin._view = None, None, None, None
        if not isinstance(self._start_engine, NativeStarter):
            twin._start_engine = _upstream_starter(self.games)
        return twin

    @property
    def task_ids(self) -> tuple[str, ...]:
        """The ids of all tasks of the split, sorted."""
        return self.games.task_ids

    def task_type_of(self, task_id: str) -> str:
        """The task type (full name) of one of the split's tasks."""
        return self.games.task_type(task_id)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, Info]:
        """Starts a task.

        Args:
            seed: Seeds the choice of tasks, and of the numbers of things under domain randomisation.
            options: ``{"task_id": ...}`` names the task; without it, the environment's generator chooses one.

        Raises:
            UnknownNameError: If the task id is not one of `task_ids`.
            ConfigError: If there is an option that is not known here.
        """
        super().reset(seed=seed)
        task_id = _task_option(options)
        if task_id is None:
            ids = self.games.task_ids
            task_id = ids[int(self.np_random.integers(len(ids)))]
        self._begin(task_id, int(self.np_random.integers(1 << 32)) if self.domain_randomization else None)
        self._action, self._action_valid = None, True
        self._look_anew()
        return self._observation, self._info()

    def step(self, action: str) -> tuple[str, float, bool, bool, Info]:
        """Carries out a command.

        Args:
            action: The command; anything else is answered like a command that is not admissible.

        Returns:
            observation, reward (1.0 when the goal holds, else 0.0), terminated, truncated (always False), info.
        """
        engine = self._playing()
        self._action = action if isinstance(action, str) else ""
        self._observation, self._action_valid = engine.step(self._action)
        won = engine.won
        if self._view is not None:
            self._view.saw(self._action, self._observation, admissible=self._action_valid)
        return self._observation, float(won), won, False, self._info()

    def render(self) -> str | None:
        """Returns the drawing of `render_mode`; with upstream's engine, the last command and its answer."""
        if self.render_mode is None:
            return None
        if self._view is not None:
            return self._view.to_html() if self.render_mode == "html" else self._view.to_ansi()
        text = self._observation if self._action is None else f"> {self._action}\n{self._observation}"
        return f"<pre>{html.escape(text)}</pre>" if self.render_mode == "html" else text

    def snapshot(self) -> Snapshot:
        """Returns the moment, to come back to with `restore`, in this environment or another one on the same games."""
        state = self._playing().snapshot()
        return Snapshot(self._task_id, state, self._action, self._observation, self._action_valid, self._naming)

    def restore(self, snapshot: Snapshot) -> tuple[str, Info]:
        """Goes back to a snapshot.

        Returns:
            The observation and the info of that moment.
        """
        if self._engine is None or (snapshot.task_id, snapshot.naming) != (self._task_id, self._naming):
            self._begin(snapshot.task_id, snapshot.naming)
        self._playing().restore(snapshot.state)
        _, _, self._action, self._observation, self._action_valid, _ = snapshot
        self._look_anew()
        return self._observation, self._info()

    @property
    def commands(self) -> tuple[str, ...]:
        """Every command that can become admissible in the current task, sorted: the actions of a discrete view."""
        return self._native().game.commands

    def action_mask(self) -> NDArray[np.int8]:
        """Returns which of `commands` are admissible now: int8 of shape (len(commands),), 1 for admissible."""
        world = self._native()
        admissible = frozenset(world.admissible)
        return np.fromiter((command in admissible for command in world.game.commands), dtype=np.int8)

    def close(self) -> None:
        """Ends the engine; closing twice is fine."""
        self._engine = None
        self._start_engine.close()

    def _begin(self, task_id: str, naming: int | None) -> None:
        started = self._start_engine(self.games.require(task_id), naming, self._engine)
        self._engine, self._observation, self._goal = started
        self._task_id, self._task_type, self._naming = task_id, self.games.task_type(task_id), naming

    def _look_anew(self) -> None:
        """Starts the drawing; what was seen before a snapshot is not part of it."""
        if self.render_mode is not None and isinstance(self._engine, World):
            from skillc_gym.envs.alfworld.render.house_view import HouseView

            self._view = HouseView(self._engine, self._observation)

    def _playing(self) -> Engine:
        if self._engine is None:
            raise ResetNeeded("No task is being played: call reset() first.")
        return self._engine

    def _native(self) -> World:
        engine = self._playing()
        if not isinstance(engine, World):
            raise ConfigError("Only engine='native' knows every command of a task beforehand.")
        return engine

    def _info(self) -> Info:
        engine = self._playing()
        won = float(engine.won)
        return {
            "task_id": self._task_id,
            "task_type": self._task_type,
            "goal": self._goal,
            "admissible_commands": engine.admissible,
            "won": won,
            "task_score": won,
            "action_valid": self._action_valid,
        }


def _upstream_starter(games: GameSet) -> Starter:
    from skillc_gym.envs.alfworld.engine.textworld import UpstreamStarter

    return UpstreamStarter(games)


def _task_option(options: Mapping[str, Any] | None) -> str | None:
    options = options or {}
    for name in options:
        if name not in ("task_id", "skill"):
            raise ConfigError(f"Unknown reset option {name!r}; this environment knows 'task_id'.")
    if options.get("skill"):
        raise ConfigError("The option 'skill' needs an environment wrapped in skillc_gym.wrappers.SkillInjection.")
    task_id = options.get("task_id")
    if task_id is not None and not isinstance(task_id, str):
        raise ConfigError(f"The option 'task_id' is a string such as env.unwrapped.task_ids[0]; got {task_id!r}.")
    return task_id
