"""Proves generated games: the planner wins each of them, and upstream says so too."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from skillc_gym.envs.alfworld.data.game_set import GameSet
from skillc_gym.envs.alfworld.engine.game import Game
from skillc_gym.envs.alfworld.engine.world import World
from skillc_gym.envs.alfworld.experts.planner import Planner
from skillc_gym.errors import ConfigError, InvalidGameError


def chosen(task_ids: Sequence[str], count: int) -> list[str]:
    """So many tasks, evenly drawn by a fixed seed; ConfigError if the number is negative."""
    if count < 0:
        raise ConfigError(f"The number of games to play must be at least 0, got {count}.")
    order = np.random.default_rng(0).permutation(len(task_ids))[:count]
    return [task_ids[index] for index in sorted(order.tolist())]


def proved_by_planner(games: GameSet, task_ids: Sequence[str] | None = None) -> list[int]:
    """Has the planner plan every game and plays its plans.

    Args:
        games: The games.
        task_ids: Only these.

    Returns:
        The length of each plan.

    Raises:
        InvalidGameError: If a game was not won.
    """
    return [_planned(games.load(task_id)) for task_id in (games.task_ids if task_ids is None else task_ids)]


def _planned(game: Game) -> int:
    plan, world = Planner(game).plan(), World(game)
    world.reset()
    valid = [world.step(command)[1] for command in plan]
    if not plan or not all(valid) or not world.won:
        raise InvalidGameError(f"The planner's plan does not win {game.task_id}: {', '.join(plan) or 'won at once'}.")
    return len(plan)


def proved_by_upstream(games: GameSet, count: int) -> int:
    """Plays the planner's plans in upstream, in games drawn by a fixed seed; returns how many: all were won.

    Raises:
        InvalidGameError: If upstream did not find a command admissible, or the game won.
        MissingExtraError: If upstream is not installed.
    """
    from skillc_gym.envs.alfworld.engine.textworld import UpstreamProcess, UpstreamWorld

    process, names = UpstreamProcess(cached=True), chosen(games.task_ids, count)
    try:
        for name in names:
            plan, world = Planner(games.load(name)).plan(), UpstreamWorld(process, games.raw(name))
            world.reset()
            valid = [world.step(command)[1] for command in plan]
            if not all(valid) or not world.won:
                raise InvalidGameError(f"Upstream does not find {name} won by: {', '.join(plan)}.")
    finally:
        process.close()
    return len(names)
