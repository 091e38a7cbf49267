"""Proves generated games: the planner wins each of them, and upstream says so too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from skillc_gym.envs.alfworld.data.game_set import GameSet
from skillc_gym.envs.alfworld.engine.game import Game
from skillc_gym.envs.alfworld.engine.world import World
from skillc_gym.envs.alfworld.experts.planner import Planner
from skillc_gym.errors import ConfigError, InvalidGameError

if TYPE_CHECKING:
    from skillc_gym.envs.alfworld.engine.textworld import UpstreamWorld


def chosen(task_ids: Sequence[str], count: int) -> list[str]:
    """So many tasks, evenly drawn by a fixed seed; ConfigError if the number is negative."""
    if count < 0:
        raise ConfigError(f"The number of games to play must be at least 0, got {count}.")
    order = np.random.default_rng(0).permutation(len(task_ids))[:count]
    return [task_ids[index] for index in sorted(order.tolist())]


def proved_by_planner(games: GameSet) -> list[int]:
    """Has the planner plan every game and plays its plans; their lengths, or InvalidGameError for one not won."""
    return [_planned(games.load(task_id)) for task_id in games.task_ids]


def _planned(game: Game) -> int:
    plan = Planner(game).plan()
    if not plan or not _wins(plan, World(game)):
        raise InvalidGameError(f"The planner's plan does not win {game.task_id}: {', '.join(plan) or 'won at once'}.")
    return len(plan)


def _wins(plan: Sequence[str], world: World | UpstreamWorld) -> bool:
    world.reset()
    return all(world.step(command)[1] for command in plan) and world.won


def proved_by_upstream(games: GameSet, count: int) -> int:
    """Plays the planner's plans in upstream, in drawn games; returns how many, or InvalidGameError for one not won."""
    from skillc_gym.envs.alfworld.engine.textworld import UpstreamProcess, UpstreamWorld

    process, names = UpstreamProcess(cached=True), chosen(games.task_ids, count)
    try:
        for name in names:
            plan = Planner(games.load(name)).plan()
            if not _wins(plan, UpstreamWorld(process, games.raw(name))):
                raise InvalidGameError(f"Upstream does not find {name} won by: {', '.join(plan)}.")
    finally:
        process.close()
    return len(names)
