"""What each knob of the generator of ALFWorld's games does to a game, one knob turned from end to end."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any

from skillc_gym.envs.alfworld.engine.game import Game
from skillc_gym.envs.alfworld.engine.world import World
from skillc_gym.envs.alfworld.experts.explorer import Explorer
from skillc_gym.envs.alfworld.experts.planner import Planner
from skillc_gym.envs.alfworld.generate import GeneratedGames

ENDS: Mapping[str, tuple[Any, Any]] = {
    "difficulty": (0.0, 1.0),
    "receptacles": (6, 36),
    "objects": (5, 45),
    "closed": (0.0, 1.0),
    "hidden": (0.0, 1.0),
    "spares": (0, 4),
}
MOVES: Mapping[str, Mapping[str, int]] = {
    "difficulty": {"plan": 1, "explorer": 1, "read": 1},
    "receptacles": {"explorer": 1, "commands": 1},
    "objects": {"read": 1},
    "closed": {"plan": 1, "explorer": 1},
    "hidden": {"plan": 1, "explorer": 1},
    "spares": {"explorer": -1},
}
"""Knob -> the measures that it moves, upwards (1) or downwards (-1)."""


def explored(game: Game) -> dict[str, int]:
    """What the explorer, which knows what the agent has read, takes to win, at most 200 steps."""
    world, steps = World(game), 0
    observation, explorer = world.reset(), Explorer(game.task_type, game.goal, seed=0)
    read, commands = len(observation), len(world.admissible)
    while not world.won and steps < 200:
        observation, _ = world.step(explorer.act(observation, world.admissible))
        read, steps = read + len(observation), steps + 1
    return {"plan": len(Planner(game).plan()), "explorer": steps, "read": read, "commands": commands}


def stuck(knob: str) -> list[str]:
    """The measures that a knob should move, and does not."""
    means = []
    for value in ENDS[knob]:
        games = GeneratedGames("train", seed=0, games_per_type=5, size="medium", **{knob: value})
        played = [explored(games.load(task_id)) for task_id in games.task_ids]
        means.append({name: statistics.mean(each[name] for each in played) for name in played[0]})
    before, after = means
    return [name for name, way in MOVES[knob].items() if (after[name] - before[name]) * way <= 0]
