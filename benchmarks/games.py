"""Games of ALFWorld, measured: how experts play them, that generated ones can be won, what the generator's knobs do.

python -m benchmarks.games experts --data FOLDER --out benchmarks/records/experts.json
python -m benchmarks.games proofs --games 10000 --out benchmarks/records/prove_games.json
python -m benchmarks.games knobs --out benchmarks/records/difficulty.json
python -m benchmarks.games likeness --data FOLDER --games 300 --out benchmarks/records/compare_games.json

Times are those of the process, so that other work on the machine does not matter.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.measuring import measurement, options_parser
from skillc_gym.envs.alfworld import SHORT_NAMES, TASK_TYPES
from skillc_gym.envs.alfworld.data import GameSet, manifest_of, open_games
from skillc_gym.envs.alfworld.engine import Game, World
from skillc_gym.envs.alfworld.experts import Explorer, Planner
from skillc_gym.envs.alfworld.generate import GeneratedGames, chosen, proved_by_planner, proved_by_upstream
from trainers.stats import wilson

Found = dict[str, Any]

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


def planned(game: Game) -> Found:
    """Plans from the start, knowing where everything is, and plays the plan."""
    started = time.process_time()
    plan = Planner(game).plan()
    seconds, world = time.process_time() - started, World(game)
    world.reset()
    for command in plan:
        world.step(command)
    return {"won": world.won, "steps": len(plan), "seconds": seconds}


def explored(game: Game, limit: int, seed: int = 0) -> Found:
    """Lets the explorer, which knows what the agent has read, play until it wins, at most so many steps."""
    world, seconds, steps = World(game), 0.0, 0
    observation, explorer = world.reset(), Explorer(game.task_type, game.goal, seed=seed)
    read, commands = len(observation), len(world.admissible)
    while not world.won and steps < limit:
        possible, started = world.admissible, time.process_time()
        command = explorer.act(observation, possible)
        seconds += time.process_time() - started
        observation, _ = world.step(command)
        read, steps = read + len(observation), steps + 1
    return {"won": world.won, "steps": steps, "seconds": seconds, "read": read, "commands": commands}


def experts(options: argparse.Namespace) -> Found:
    """Both experts on whole splits: every game once by the planner, and once for each seed by the explorer."""
    sets = {split: open_games(options.data, split=split) for split in options.splits}
    lines = [
        {"split": split, **line} for split, games in sets.items() for line in _played(games, options.seeds, options)
    ]
    kinds = sorted({line["task_type"] for line in lines})
    return {
        "manifests": {split: manifest_of(games).sha256 for split, games in sets.items()},
        "splits": {split: _by_expert([line for line in lines if line["split"] == split]) for split in sets},
        "types": {kind: _by_expert([line for line in lines if line["task_type"] == kind]) for kind in kinds},
        "lost": [line for line in lines if not line["won"]],
    }


def _played(games: GameSet, seeds: Sequence[int], options: argparse.Namespace) -> list[Found]:
    lines = []
    for task_id in games.task_ids:
        game = games.load(task_id)
        about = {"task_id": task_id, "task_type": SHORT_NAMES[game.task_type]}
        lines.append({**about, "expert": "planner", "seed": None, **planned(game)})
        found = ({"seed": seed, **explored(game, options.max_steps, seed)} for seed in seeds)
        lines += [{**about, "expert": "explorer", **each} for each in found]
    return lines


def _by_expert(lines: Sequence[Found]) -> Found:
    return {
        expert: _summary([line for line in lines if line["expert"] == expert]) for expert in ("planner", "explorer")
    }


def _summary(lines: Sequence[Found]) -> Found:
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


def proofs(options: argparse.Namespace) -> Found:
    """Makes games and plays each to its end by the planner, a sample in upstream; one that is not won is an error."""
    return {"seed": options.seed, "proofs": [_proof(size, options) for size in options.sizes]}


def _proof(size: str, options: argparse.Namespace) -> Found:
    started = time.process_time()
    made = GeneratedGames("train", seed=options.seed, games_per_type=-(-options.games // len(TASK_TYPES)), size=size)
    for task_id in made.task_ids:
        made.raw(task_id)
    seconds = time.process_time() - started
    plans = proved_by_planner(made)
    return {
        "size": size,
        "games": len(made.task_ids),
        "seconds_to_make": seconds,
        "won_by_planner": len(plans),
        "mean_plan": statistics.mean(plans),
        "seconds_to_plan": time.process_time() - started - seconds,
        "won_in_upstream": proved_by_upstream(made, options.upstream) if options.upstream else 0,
    }


def knobs(options: argparse.Namespace) -> Found:
    """Shortest plan, the explorer's steps, what it reads and its first commands, one knob turned at a time."""
    count = -(-options.games // len(TASK_TYPES))
    found = {knob: turned(knob, count, options.seed) for knob in KNOBS}
    return {"games_per_type": count, "knobs": found, "stuck": [knob for knob in found if stuck(knob, found[knob])]}


def turned(knob: str, games_per_type: int, seed: int = 0) -> list[Found]:
    """The mean figures of every setting of a knob."""
    return [{"setting": value, **_means(games_per_type, seed, **{knob: value})} for value in KNOBS[knob]]


def stuck(knob: str, rows: Sequence[Found]) -> list[str]:
    """The measures that a knob should move with every turn, and does not."""
    return [
        name
        for name, direction in MOVES[knob].items()
        if not all((after[name] - before[name]) * direction > 0 for before, after in pairwise(rows))
    ]


def _means(games_per_type: int, seed: int, **knob: Any) -> Found:
    games = GeneratedGames("train", seed=seed, games_per_type=games_per_type, size="medium", **knob)
    loaded = [games.load(task_id) for task_id in games.task_ids]
    played = [explored(game, 200) for game in loaded]
    found = {"plan": statistics.mean(len(Planner(game).plan()) for game in loaded)}
    measures = (("explorer", "steps"), ("read", "read"), ("commands", "commands"))
    return found | {name: statistics.mean(each[key] for each in played) for name, key in measures}


def likeness(options: argparse.Namespace) -> Found:
    """Real training games and as many generated ones of size "real" and of the real mix."""
    asked = {"size": "real", "games_per_type": -(-options.games // len(SHORT_NAMES)), "mix": "real"}
    sets = {
        "real": open_games(options.data, split="train"),
        "generated": open_games("generated", split="train", generator=asked),
    }
    samples = {
        kind: [_counts(games.load(task_id)) for task_id in chosen(games.task_ids, options.games)]
        for kind, games in sets.items()
    }
    names = list(samples["real"][0])
    return {
        "games": options.games,
        "measures": {
            name: {kind: _spread([each[name] for each in found]) for kind, found in samples.items()} for name in names
        },
        "types": {kind: _shares(games) for kind, games in sets.items()},
    }


def _counts(game: Game) -> dict[str, int]:
    inside, planner = game.start.inside, Planner(game)
    lying = set().union(*inside) & set(game.pickupable)
    hidden = set().union(*(things for index, things in enumerate(inside) if game.openable >> index & 1)) & lying
    return {
        "receptacles": len(game.receptacles),
        "receptacles that open": game.openable.bit_count(),
        "places to stand": len({place for of in game.places_of for place in of}),
        "objects that lie about": len(lying),
        "objects behind doors": len(hidden),
        "wanted objects": len(planner.things & lying),
        "shortest plan": len(planner.plan()),
        "steps of the explorer": explored(game, 100)["steps"],
    }


def _spread(values: Sequence[int]) -> list[float]:
    """Mean, and the 10th and 90th percentile."""
    return [round(statistics.mean(values), 1), *(int(np.percentile(values, share)) for share in (10, 90))]


def _shares(games: GameSet) -> dict[str, float]:
    counts = Counter(SHORT_NAMES[games.task_type(task_id)] for task_id in games.task_ids)
    return {kind: counts[kind] / len(games.task_ids) for kind in SHORT_NAMES.values()}


MEASURED: Mapping[str, Callable[[argparse.Namespace], Found]] = {
    "experts": experts,
    "knobs": knobs,
    "likeness": likeness,
    "proofs": proofs,
}


def main(words: Sequence[str] | None = None) -> int:
    """Measures; 1 where a knob does not move what it should, 2 where the measurement was refused."""
    parser = options_parser(__doc__)
    parser.add_argument("what", choices=MEASURED, help="what is measured")
    parser.add_argument("--data", help="folder or archive of games, or 'generated' (default: ALFWORLD_DATA)")
    parser.add_argument("--splits", nargs="+", default=["valid_seen", "valid_unseen"], help="experts: which splits")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="experts: of the explorer's search")
    parser.add_argument("--max-steps", type=int, default=50, help="experts: steps that the explorer has")
    parser.add_argument("--games", type=int, default=300, help="games of a sample, a size or a setting")
    parser.add_argument("--sizes", nargs="+", default=["small", "real"], help="proofs: sizes of the games")
    parser.add_argument("--upstream", type=int, default=30, help="proofs: how many of a size to play in upstream")
    parser.add_argument("--seed", type=int, default=0, help="of the family of generated games")
    return measurement(
        parser, lambda options: MEASURED[options.what](options), words, failed=lambda record: bool(record.get("stuck"))
    )


if __name__ == "__main__":
    sys.exit(main())
