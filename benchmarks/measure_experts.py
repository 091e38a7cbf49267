"""Plays the two experts on whole splits: ``python -m benchmarks.measure_experts --data FOLDER``.

The planner knows where everything is; the explorer knows what the agent has read. Times are those of the process, so
that other work on the machine does not matter.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.revision import write_record
from skillc_gym.envs.alfworld import SHORT_NAMES
from skillc_gym.envs.alfworld.data import GameSet, manifest_of, open_games
from skillc_gym.envs.alfworld.engine import Game, World
from skillc_gym.envs.alfworld.experts import Explorer, Planner
from skillc_gym.errors import SkillCError
from trainers.stats import wilson
from trainers.tracking import make_folder

Line = dict[str, Any]


def planned(game: Game) -> Line:
    """Plans from the start and plays the plan."""
    started = time.process_time()
    plan = Planner(game).plan()
    seconds, world = time.process_time() - started, World(game)
    world.reset()
    for command in plan:
        world.step(command)
    return {"won": world.won, "steps": len(plan), "seconds": seconds}


def explored(game: Game, seed: int, limit: int) -> Line:
    """Lets the explorer play until it wins, at most so many steps."""
    world, seconds, steps = World(game), 0.0, 0
    observation, explorer = world.reset(), Explorer(game.task_type, game.goal, seed=seed)
    while not world.won and steps < limit:
        commands, started = world.admissible, time.process_time()
        command = explorer.act(observation, commands)
        seconds += time.process_time() - started
        observation, _ = world.step(command)
        steps += 1
    return {"won": world.won, "steps": steps, "seconds": seconds}


def measured(games: GameSet, seeds: Sequence[int], limit: int) -> list[Line]:
    """Every game once by the planner and once for each seed by the explorer."""
    lines = []
    for task_id in games.task_ids:
        game = games.load(task_id)
        about = {"task_id": task_id, "task_type": SHORT_NAMES[game.task_type]}
        lines.append({**about, "expert": "planner", "seed": None, **planned(game)})
        lines += [{**about, "expert": "explorer", "seed": seed, **explored(game, seed, limit)} for seed in seeds]
    return lines


def summary(lines: Sequence[Line]) -> Line:
    """Wins, steps and times of some lines."""
    won, steps, seconds = ([line[name] for line in lines] for name in ("won", "steps", "seconds"))
    interval = wilson(sum(won), len(won))
    return {
        "episodes": len(lines),
        "won": sum(won),
        "low": interval.low,
        "high": interval.high,
        "median_steps": statistics.median(steps),
        "most_steps": max(steps),
        "median_ms": 1000 * statistics.median(seconds),
        "most_ms": 1000 * max(seconds),
    }


def _row(name: str, expert: str, found: Line) -> str:
    share = 100 * found["won"] / found["episodes"]
    return (
        f"| {name} | {expert} | {found['won']:,} of {found['episodes']:,} | {share:.1f} % "
        f"[{100 * found['low']:.1f}, {100 * found['high']:.1f}] | {found['median_steps']:.0f} (at most "
        f"{found['most_steps']}) | {found['median_ms']:.1f} ms (at most {found['most_ms']:.0f}) |"
    )


def _markdown(parts: dict[str, dict[str, Line]], types: dict[str, dict[str, Line]], limit: int, command: str) -> str:
    head = ["| | expert | won | share | steps | time of an episode |", "|---|---|---|---|---|---|"]
    lines = [
        "# The two experts on real games",
        "",
        "The planner plans once, from the start, knowing where everything is. The explorer knows what the agent has "
        f"read, and has {limit} steps. Time is what the expert itself takes for a whole episode, the environment's "
        "left out.",
        "",
        *head,
        *(_row(f"`{split}`", expert, found) for split, experts in parts.items() for expert, found in experts.items()),
        *(_row(kind, expert, found) for kind, experts in types.items() for expert, found in experts.items()),
        "",
        f"`{command}`",
        "",
    ]
    return "\n".join(lines)


def _by(lines: Sequence[Line], names: Sequence[str], key: str) -> dict[str, dict[str, Line]]:
    return {
        name: {
            expert: summary([line for line in lines if line[key] == name and line["expert"] == expert])
            for expert in ("planner", "explorer")
        }
        for name in names
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        description="Play the experts on whole splits.", formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--data", help="folder or archive of games, or 'generated' (default: ALFWORLD_DATA)")
    parser.add_argument("--splits", nargs="+", default=["valid_seen", "valid_unseen"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="seeds of the explorer's search")
    parser.add_argument("--max-steps", type=int, default=50, help="steps that the explorer has")
    parser.add_argument("--out", type=Path, default=Path("docs/results/experts"), help="record, without suffix")
    args = parser.parse_args(argv)
    try:
        make_folder(args.out.parent)
        sets = {split: open_games(args.data, split=split) for split in args.splits}
        lines = [
            {"split": split, **line}
            for split, games in sets.items()
            for line in measured(games, args.seeds, args.max_steps)
        ]
    except SkillCError as error:
        print(f"measure_experts: {error}", file=sys.stderr)
        return 2
    parts = _by(lines, args.splits, "split")
    types = _by(lines, sorted({line["task_type"] for line in lines}), "task_type")
    manifests = {split: manifest_of(games).sha256 for split, games in sets.items()}
    lost = [line for line in lines if not line["won"]]
    write_record(args.out.with_suffix(".json"), {"manifests": manifests, "splits": parts, "types": types, "lost": lost})
    words = f"--seeds {' '.join(map(str, args.seeds))} --max-steps {args.max_steps}"
    words += "" if args.splits == parser.get_default("splits") else f" --splits {' '.join(args.splits)}"
    words += " --data generated" if args.data == "generated" else ""
    text = _markdown(parts, types, args.max_steps, f"python -m benchmarks.measure_experts {words}")
    args.out.with_suffix(".md").write_text(text, encoding="utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
