"""The coin collector as a Gymnasium environment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skillc_gym.envs.base import Info, Outcome, TextTaskEnv, rendered, require_render_mode, reset_needed
from skillc_gym.envs.coins.tasks import DIRECTIONS, MOST_MOVES, Family, Maze, TaskSet
from skillc_gym.errors import ConfigError
from skillc_gym.pages import text_picture
from skillc_gym.spaces import Unicode

_LONGEST_ANSWER, _LONGEST_COMMAND = 400, 64
_MOVES = {f"go {way}": way for way in DIRECTIONS}


class _State(NamedTuple):
    room: int
    taken: bool


class CoinCollectorEnv(TextTaskEnv):
    """Walk through rooms, of which only one is seen at a time, until the coin is there; then take it.

    The reward is 1.0 for taking the coin, which ends the episode. Types: ``easy`` (a chain of rooms), ``medium`` and
    ``hard`` (one and two dead ends at each room).

    Args:
        split: "train", "valid" or "test": different mazes of one family.
        data: None or "generated"; there are no others.
        task_types: Which types to play; None for all.
        generator: Options of `skillc_gym.envs.coins.tasks.Family`: seed, tasks_per_type, shortest, longest.
        render_mode: "ansi" for the last answer as text, "rgb_array" for a picture of it; None otherwise.

    Examples:
        >>> env = CoinCollectorEnv(split="valid", task_types="easy")
        >>> observation, info = env.reset(seed=0)
        >>> info["admissible_commands"][-2:]
        ['inventory', 'look']
    """

    metadata = rendered("ansi", "rgb_array")
    goal = "find the coin and take it."
    commands = tuple(sorted((*_MOVES, "inventory", "look", "take coin")))
    """Every command that can become admissible, sorted: the same in every maze."""

    def __init__(
        self,
        *,
        split: str = "train",
        data: str | None = None,
        task_types: Iterable[str] | str | None = None,
        generator: Mapping[str, Any] | None = None,
        render_mode: str | None = None,
    ) -> None:
        self.render_mode = require_render_mode(render_mode, self.metadata)
        if data not in (None, "generated"):
            raise ConfigError(
                f"The coin collector's mazes are generated; data must be None or 'generated', got {data!r}"
            )
        self.tasks = TaskSet(split, task_types, Family.of(generator))
        self.task_ids = self.tasks.ids
        self.observation_space = Unicode(_LONGEST_ANSWER)
        self.action_space = Unicode(_LONGEST_COMMAND)
        self._maze = Maze((), (), 0, 0)
        self._now = _State(0, False)

    def all_commands(self) -> tuple[str, ...]:
        """Every command of any maze, sorted."""
        return self.commands

    def action_mask(self) -> NDArray[np.int8]:
        """Returns which of `commands` are admissible now: int8 of shape (len(commands),)."""
        if not self._task_id:
            raise reset_needed()
        admissible = self._commands()
        return np.array([command in admissible for command in self.commands], dtype=np.int8)

    def task_type_of(self, task_id: str) -> str:
        """A task's type: easy, medium or hard."""
        return self.tasks.type_of(task_id)

    def identify(self, task_ids: Iterable[str]) -> Info:
        """The generator's options, from which the mazes follow."""
        return {"generator": asdict(self.tasks.family)}

    def difficulty_of(self, task_id: str) -> float | None:
        """Moves to the coin, as a share of the most there can be."""
        self.task_type_of(task_id)
        return self.tasks.maze(task_id).moves / MOST_MOVES

    def render(self) -> Any:
        """Returns the last answer as text or as a picture, uint8 of shape (720, 960, 3), as `render_mode` says."""
        if self.render_mode is None:
            return None
        text = self.snapshot().observation
        return text_picture(text) if self.render_mode == "rgb_array" else text

    def _start(self, task_id: str) -> str:
        self._maze, self._now = self.tasks.maze(task_id), _State(0, False)
        return f"{self._seen()}\n\nYour task is to: {self.goal}"

    def _act(self, action: str) -> Outcome:
        if action not in self._commands():
            return "That is not possible.", 0.0, False, False
        if action in _MOVES:
            self._now = _State(self._maze.doors[self._now.room][_MOVES[action]], False)
        elif action == "take coin":
            self._now = _State(self._now.room, True)
            return "You take the coin. The task is done.", 1.0, True, True
        elif action == "inventory":
            return "You carry nothing.", 0.0, False, True
        return self._seen(), 0.0, False, True

    def _seen(self) -> str:
        room = self._now.room
        ways = list(self._maze.doors[room])
        exits = f"an exit to the {ways[0]}" if len(ways) == 1 else f"exits to the {', '.join(ways[:-1])} and {ways[-1]}"
        there = " A coin lies on the floor." if room == self._maze.coin else ""
        return f"You are in the {self._maze.names[room]}. There {'is' if len(ways) == 1 else 'are'} {exits}.{there}"

    def _commands(self) -> list[str]:
        if self._now.taken:
            return ["inventory", "look"]
        moves = [f"go {way}" for way in self._maze.doors[self._now.room]]
        return [*moves, "inventory", "look", *(["take coin"] if self._now.room == self._maze.coin else [])]

    def _score(self) -> float:
        return float(self._now.taken)

    def _state(self) -> Any:
        return self._now

    def _restore_state(self, state: Any) -> None:
        self._now = state
