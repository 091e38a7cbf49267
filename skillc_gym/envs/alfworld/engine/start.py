"""What starts a game: in the native state machine here, in upstream's engine in `textworld`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from gymnasium.error import ResetNeeded

from skillc_gym.envs.alfworld.data.game_set import GameSet
from skillc_gym.envs.alfworld.engine.world import World

if TYPE_CHECKING:
    from skillc_gym.envs.alfworld.engine.textworld import UpstreamStarter, UpstreamWorld

    Engine: TypeAlias = "World | UpstreamWorld | Stopped"
    Starter: TypeAlias = "UpstreamStarter | NativeStarter"


class Stopped:
    """Stands for an engine before the first task and after the last: what is asked of it raises ``ResetNeeded``."""

    won = False
    admissible: ClassVar[list[str]] = []

    def step(self, *_given: Any) -> Any:
        """There is no game."""
        raise ResetNeeded("No task is being played: call reset() first.")

    snapshot = restore = step


STOPPED = Stopped()


class NativeStarter:
    """Starts tasks on the native engine, each in an engine of its own or in the one that played the last task."""

    def __init__(self, games: GameSet) -> None:
        self._games = games

    def __call__(self, task_id: str, naming: int | None, engine: object) -> tuple[World, str, str]:
        """Returns an engine at the start of a task, its first feedback and the goal."""
        game = self._games.load(task_id, naming)
        world = engine if isinstance(engine, World) and engine.game is game else World(game)
        return world, world.reset(), game.goal

    def close(self) -> None:
        """Nothing is held."""
