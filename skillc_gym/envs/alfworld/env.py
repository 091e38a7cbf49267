"""ALFWorld as a Gymnasium environment."""

from __future__ import annotations

import html
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skillc_gym.envs.alfworld.data.games import open_games
from skillc_gym.envs.alfworld.engine.game import MAX_ANSWER, MAX_COMMAND
from skillc_gym.envs.alfworld.engine.tables import numbered_anyhow
from skillc_gym.envs.alfworld.engine.world import World
from skillc_gym.envs.alfworld.tasks import task_type_of
from skillc_gym.envs.base import (
    Info,
    Outcome,
    Snapshot,
    TextTaskEnv,
    rendered,
    require_render_mode,
    reset_needed,
)
from skillc_gym.errors import ConfigError, require_name
from skillc_gym.pages import text_picture
from skillc_gym.spaces import Unicode
from skillc_gym.values import require_switch

if TYPE_CHECKING:
    from skillc_gym.envs.alfworld.engine.textworld import UpstreamProcess, UpstreamWorld
    from skillc_gym.envs.alfworld.house_view import HouseView

ENGINES = ("native", "textworld")
_NOT_BEGUN: tuple[str, int | None] = ("", None)
"""The task and the naming of an engine that has none."""


class GameState(NamedTuple):
    """The state of a running game: the engine's own, and how things are numbered under domain randomisation."""

    engine: Any
    naming: int | None


class ALFWorldEnv(TextTaskEnv):
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
            transcript; "rgb_array" for the text as a picture; None otherwise.

    Raises:
        UnknownNameError: If the split, a task type or the engine does not exist.
        MissingDataError: If there are no games; the message says where it looked and what to do.

    Examples:
        >>> env = gymnasium.make("skillc/ALFWorld-v0", split="valid_unseen")                 # doctest: +SKIP
        >>> observation, info = env.reset(seed=0)                                            # doctest: +SKIP
        >>> observation, reward, won, cut, info = env.step(info["admissible_commands"][0])   # doctest: +SKIP
    """

    metadata = rendered("ansi", "html", "rgb_array")

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
        require_name("engine", engine, ENGINES)
        self.render_mode = require_render_mode(render_mode, self.metadata)
        self.games = open_games(data, split=split, task_types=task_types, generator=generator)
        self.task_ids = self.games.task_ids
        self.observation_space = Unicode(MAX_ANSWER)
        self.action_space = Unicode(MAX_COMMAND)
        self.domain_randomization = require_switch("domain_randomization", domain_randomization)
        self._process = _upstream_process() if engine == "textworld" else None
        self._engine: Any = None  # a World or an UpstreamWorld while a task is played
        self._begun, self._read = _NOT_BEGUN, tuple[int, ...]()
        self._view: HouseView | None = None

    def task_type_of(self, task_id: str) -> str:
        """The task type (full name) of one of the split's tasks; UnknownNameError for any other id."""
        return task_type_of(self.games.require(task_id))

    def identify(self, task_ids: Iterable[str]) -> Info:
        """Returns what identifies these tasks besides their names: a hash of the games' content, and the naming."""
        return {
            "games_sha256": self.games.contents_sha256(task_ids),
            "domain_randomization": self.domain_randomization,
        }

    def difficulty_of(self, task_id: str) -> float | None:
        """The difficulty of a generated game whose name tells it, from 0 to 1; None for any other."""
        from skillc_gym.envs.alfworld.generate.games import difficulty_of

        return difficulty_of(task_id)

    def render(self) -> Any:
        """Returns the drawing: text, or a picture as uint8 of shape (720, 960, 3); of upstream's, the last answer."""
        if self.render_mode is None:
            return None
        if not self._task_id:
            raise reset_needed()
        if self.render_mode == "html" and self._view is not None:
            return self._view.to_page()
        last = self._observation if self._action is None else f"> {self._action}\n{self._observation}"
        text = last if self._view is None else self._view.to_ansi()
        if self.render_mode == "html":
            return f"<pre>{html.escape(text)}</pre>"
        return text_picture(text) if self.render_mode == "rgb_array" else text

    def restore(self, snapshot: Snapshot) -> tuple[str, Info]:
        """Goes back to a snapshot; the drawing starts there, since what was seen before is not part of it."""
        observation, info = super().restore(snapshot)
        self._start_view(observation)
        return observation, info

    @property
    def commands(self) -> tuple[str, ...]:
        """Every command that can become admissible in the current task, sorted."""
        if not self._task_id:
            raise reset_needed()
        if not isinstance(self._engine, World):
            raise ConfigError("Only engine='native' knows every command of a task beforehand.")
        return self._engine.game.commands

    def action_mask(self) -> NDArray[np.int8]:
        """Returns which of `commands` are admissible now: int8 of shape (len(commands),), 1 for admissible."""
        commands, admissible = self.commands, frozenset(self._commands())
        return np.fromiter((command in admissible for command in commands), dtype=np.int8)

    def all_commands(self) -> tuple[str, ...]:
        """Every command of any task, sorted, however its things may be numbered; loads every task once."""
        found: set[str] = set()
        for game in map(self.games.load, self.task_ids):
            found |= numbered_anyhow(game.commands, game.names) if self.domain_randomization else {*game.commands}
        return tuple(sorted(found))

    def close(self) -> None:
        """Ends the engine; closing twice is fine."""
        self._engine, self._begun, self._task_id = None, _NOT_BEGUN, ""
        if self._process is not None:
            self._process.close()

    def _start(self, task_id: str) -> str:
        naming = int(self.np_random.integers(1 << 32)) if self.domain_randomization else None
        observation = self._begin(task_id, naming)
        self._start_view(observation)
        return observation

    def _begin(self, task_id: str, naming: int | None) -> str:
        read = self.games.state_of(task_id)
        if self._begun != (task_id, naming) or self._read != read:
            self._engine, self._read = self._make_engine(task_id, naming), read
        self._begun = _NOT_BEGUN  # if the reset raises, the next task gets an engine of its own
        observation: str = self._engine.reset()
        self.goal, self._begun = self._engine.goal, (task_id, naming)
        return observation

    def _make_engine(self, task_id: str, naming: int | None) -> World | UpstreamWorld:
        if self._process is None:
            return World(self.games.load(task_id, naming))
        from skillc_gym.envs.alfworld.engine.textworld import UpstreamWorld

        return UpstreamWorld(self._process, self.games.raw(task_id), naming)

    def _act(self, action: str) -> Outcome:
        observation, valid = self._engine.step(action)
        if self._view is not None:
            self._view.saw(action, observation, admissible=valid)
        won = self._engine.won
        return observation, float(won), won, valid

    def _commands(self) -> list[str]:
        commands: list[str] = self._engine.admissible
        return commands

    def _score(self) -> float:
        return 1.0 if self._engine.won else 0.0

    def _state(self) -> GameState:
        return GameState(self._engine.snapshot(), self._begun[1])

    def _restore_state(self, state: GameState) -> None:
        self._engine.restore(state.engine)

    def _return_to(self, task_id: str, state: GameState) -> None:
        if self._begun != (task_id, state.naming):
            self._task_id = ""  # whatever raises from here on, the episode before is over
            self._begin(task_id, state.naming)
        self._restore_state(state)

    def _separate(self) -> None:
        self._engine, self._begun, self._view = None, _NOT_BEGUN, None
        if self._process is not None:
            self._process = _upstream_process()

    def _start_view(self, observation: str) -> None:
        if self.render_mode is not None and isinstance(self._engine, World):
            from skillc_gym.envs.alfworld.house_view import HouseView

            self._view = HouseView(self._engine, observation)


def _upstream_process() -> UpstreamProcess:
    from skillc_gym.envs.alfworld.engine.textworld import UpstreamProcess

    return UpstreamProcess()
