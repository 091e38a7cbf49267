"""What plays a game, and what starts it: the native state machine here, upstream's engine in `textworld`."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from gymnasium.error import ResetNeeded

from skillc_gym.envs.alfworld.data.game_set import GameSet
from skillc_gym.envs.alfworld.engine.world import World


class Engine(Protocol):
    """What plays a game: the native state machine or upstream's engine."""

    @property
    def won(self) -> bool:
        """Whether the goal holds now."""

    @property
    def admissible(self) -> list[str]:
        """The admissible commands, sorted; a new list each time."""

    def reset(self) -> str:
        """Starts the game again and returns the first feedback."""

    def step(self, command: str) -> tuple[str, bool]:
        """Returns the feedback, and whether the command was admissible."""

    def snapshot(self) -> Any:
        """Returns the state, as a value that can be pickled."""

    def restore(self, state: Any) -> None:
        """Goes to a state."""


class _Stopped:
    """Stands for an engine before the first task and after the last."""

    won = False
    admissible: ClassVar[list[str]] = []

    def reset(self, *_given: Any) -> Any:
        """There is no game."""
        raise ResetNeeded("No task is being played: call reset() first.")

    step = snapshot = restore = reset


STOPPED: Engine = _Stopped()
"""No game: what is asked of it raises ``ResetNeeded``."""


class Starter(Protocol):
    """Starts tasks, each in an engine of its own or in the one that played the last task."""

    def __call__(self, task_id: str, naming: int | None, engine: Engine) -> tuple[Engine, str, str]:
        """Returns an engine at the start of a task, its first feedback and the goal."""

    def close(self) -> None:
        """Frees what the starter holds."""


class NativeStarter:
    """Starts tasks on the native engine."""

    def __init__(self, games: GameSet) -> None:
        self._games = games

    def __call__(self, task_id: str, naming: int | None, engine: Engine) -> tuple[Engine, str, str]:
        """Returns an engine at the start of a task, its first feedback and the goal."""
        game = self._games.load(task_id, naming)
        world = engine if isinstance(engine, World) and engine.game is game else World(game)
        return world, world.reset(), game.goal

    def close(self) -> None:
        """Nothing is held."""
