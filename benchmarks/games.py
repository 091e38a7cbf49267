"""What each knob of the generator of ALFWorld's games does to a game, one knob turned at a time.

python -m benchmarks.games --out benchmarks/records/difficulty.json
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from benchmarks.measuring import measurement, options_parser
from skillc_gym.envs.alfworld import TASK_TYPES
from skillc_gym.envs.alfworld.engine import Game, World
from skillc_gym.envs.alfworld.experts import Explorer, Planner
from skillc_gym.envs.alfworld.generate import GeneratedGames

KNOBS: Mapping[str, Sequence[Any]] = {
    "difficulty": (0.0, 0.25, 0.5, 0.75, 1.0),
    "receptacles": (6, 12, 24, 36),
    "objects": (5, 15, 30, 45),
    "closed": (0.0, 0.33, 0.67, 1.0),
    "hidden": (0.0, 0.33, 0.67, 1.0),
    "spares": (0, 1, 2, 4),
}
"""Knob -> what it is set to; the others stay at size "medium"."""
MOVES: Mapping[str, Mapping[str, int]] = {
    "difficulty": {"plan": 1, "explorer": 1, "read": 1},
    "receptacles": {"explorer": 1, "commands": 1},
    "objects": {"read": 1},
    "closed": {"plan": 1, "explorer": 1},
    "hidden": {"plan": 1, "explorer": 1},
    "spares": {"explorer": -1},
}
"""Knob -> the measures that every turn of it moves, upwards (1) or downwards (-1)."""


def explored(game: Game) -> dict[str, int]:
    """What the explorer, which knows what the agent has read, takes to win, at most 200 steps."""
    world, steps = World(game), 0
    observation, explorer = world.reset(), Explorer(game.task_type, game.goal, seed=0)
    read, commands = len(observation), len(world.admissible)
    while not world.won and steps < 200:
        observation, _ = world.step(explorer.act(observation, world.admissible))
        read, steps = read + len(observation), steps + 1
    return {"plan": len(Planner(game).plan()), "explorer": steps, "read": read, "commands": commands}


def turned(knob: str, games_per_type: int, seed: int = 0) -> list[dict[str, Any]]:
    """The mean figures of every setting of a knob: shortest plan, the explorer's steps, what it reads, its commands."""
    rows = []
    for value in KNOBS[knob]:
        games = GeneratedGames("train", seed=seed, games_per_type=games_per_type, size="medium", **{knob: value})
        played = [explored(games.load(task_id)) for task_id in games.task_ids]
        rows.append({"setting": value, **{name: statistics.mean(each[name] for each in played) for name in played[0]}})
    return rows


def stuck(knob: str, rows: Sequence[dict[str, Any]]) -> list[str]:
    """The measures that a knob should move with every turn, and does not."""
    return [
        name
        for name, direction in MOVES[knob].items()
        if not all((after[name] - before[name]) * direction > 0 for before, after in pairwise(rows))
    ]


def _measure(options: argparse.Namespace) -> dict[str, Any]:
    count = -(-options.games // len(TASK_TYPES))
    found = {knob: turned(knob, count, options.seed) for knob in KNOBS}
    return {"games_per_type": count, "knobs": found, "stuck": [knob for knob in found if stuck(knob, found[knob])]}


def main(words: Sequence[str] | None = None) -> int:
    """Measures; 1 where a knob does not move what it should, 2 where the measurement was refused."""
    parser = options_parser(__doc__)
    parser.add_argument("--games", type=int, default=300, help="games of a setting")
    parser.add_argument("--seed", type=int, default=0, help="of the family of generated games")
    return measurement(parser, _measure, words, failed=lambda record: bool(record["stuck"]))


if __name__ == "__main__":
    sys.exit(main())
