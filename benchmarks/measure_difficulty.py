"""Measures what each knob of the generator does: ``python -m benchmarks.measure_difficulty``.

For some settings of each knob, all else alike: the length of shortest plans, the steps of an explorer until it wins,
how many characters it reads in an episode, and how many commands are admissible at the start.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.revision import write_record
from skillc_gym.envs.alfworld import TASK_TYPES
from skillc_gym.envs.alfworld.engine import Game, World
from skillc_gym.envs.alfworld.experts import Explorer, Planner
from skillc_gym.envs.alfworld.generate import GeneratedGames
from skillc_gym.errors import SkillCError
from trainers.tracking import make_folder

MEASURES = ("plan", "explorer", "read", "commands")
LIMIT = 200
SETTINGS: dict[str, tuple[Any, ...]] = {
    "difficulty": (0.0, 0.25, 0.5, 0.75, 1.0),
    "receptacles": (6, 12, 24, 36),
    "objects": (5, 15, 30, 45),
    "closed": (0.0, 0.33, 0.67, 1.0),
    "hidden": (0.0, 0.33, 0.67, 1.0),
    "spares": (0, 1, 2, 4),
}
"""Knob -> what it is set to; the others stay at size "medium"."""
MOVES = {
    "difficulty": {"plan": 1, "explorer": 1, "read": 1},
    "receptacles": {"explorer": 1, "commands": 1},
    "objects": {"read": 1},
    "closed": {"plan": 1, "explorer": 1},
    "hidden": {"plan": 1, "explorer": 1},
    "spares": {"explorer": -1},
}
"""Knob -> the measures it moves, upwards (1) or downwards (-1)."""


def measures(game: Game) -> tuple[int, ...]:
    """The figures of one game, in the order of `MEASURES`."""
    world = World(game)
    observation, explorer = world.reset(), Explorer(game.task_type, game.goal)
    commands, read, steps = len(world.admissible), len(observation), 0
    while not world.won and steps < LIMIT:
        observation, _ = world.step(explorer.act(observation, world.admissible))
        read, steps = read + len(observation), steps + 1
    return len(Planner(game).plan()), steps, read, commands


def figures(games_per_type: int, seed: int = 0, **options: Any) -> dict[str, float]:
    """Mean figures of games of all types."""
    games = GeneratedGames("train", seed=seed, games_per_type=games_per_type, size="medium", **options)
    found = [measures(games.load(task_id)) for task_id in games.task_ids]
    return dict(zip(MEASURES, map(statistics.mean, zip(*found, strict=True)), strict=True))


def monotone(values: Sequence[float], direction: int) -> bool:
    """Whether every value is larger (or smaller) than the one before it."""
    return all((after - before) * direction > 0 for before, after in itertools.pairwise(values))


def measured(knob: str, games_per_type: int, seed: int = 0) -> list[dict[str, Any]]:
    """The figures of every setting of a knob."""
    return [{"setting": value, **figures(games_per_type, seed, **{knob: value})} for value in SETTINGS[knob]]


def _markdown(found: dict[str, list[dict[str, Any]]], games: int, command: str) -> str:
    lines = [
        "# What the knobs of the generator do",
        "",
        f"Means over {games} generated games of size `medium`, all task types, one knob turned at a time: steps of the "
        "shortest plan; steps until the explorer wins, which sees only what the agent sees; characters that it "
        "reads; commands admissible at the start. **Bold**: rises, or falls, with every setting.",
    ]
    for knob, rows in found.items():
        values = {name: [row[name] for row in rows] for name in MEASURES}
        strict = {name for name in MEASURES if monotone(values[name], 1) or monotone(values[name], -1)}
        heads = [f"**{name}**" if name in strict else name for name in MEASURES]
        lines += ["", f"| `{knob}` | {' | '.join(heads)} |", "|---|---|---|---|---|"]
        for row in rows:
            cells = [f"{row[name]:.0f}" if name == "read" else f"{row[name]:.1f}" for name in MEASURES]
            lines.append(f"| {row['setting']} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", f"`{command}`", ""])


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status: 1 if a knob does not do what it says."""
    parser = argparse.ArgumentParser(
        description="Measure the generator's knobs.", formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--games-per-type", type=int, default=50, help="games of each task type for each setting")
    parser.add_argument("--seed", type=int, default=0, help="seed of the family of games")
    parser.add_argument("--out", type=Path, default=Path("docs/results/difficulty"), help="record, without suffix")
    args = parser.parse_args(argv)
    try:
        make_folder(args.out.parent)
        found = {knob: measured(knob, args.games_per_type, args.seed) for knob in SETTINGS}
    except SkillCError as error:
        print(f"measure_difficulty: {error}", file=sys.stderr)
        return 2
    write_record(args.out.with_suffix(".json"), {"games_per_type": args.games_per_type, "knobs": found})
    command = f"python -m benchmarks.measure_difficulty --games-per-type {args.games_per_type}"
    command += f" --seed {args.seed}" if args.seed else ""
    text = _markdown(found, args.games_per_type * len(TASK_TYPES), command)
    args.out.with_suffix(".md").write_text(text, encoding="utf-8")
    print(text)
    wrong = [
        f"{knob} does not move {name} throughout"
        for knob, moves in MOVES.items()
        for name, direction in moves.items()
        if not monotone([row[name] for row in found[knob]], direction)
    ]
    for sentence in wrong:
        print(f"measure_difficulty: {sentence}", file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
