"""Lets the rule-based shopper buy for every goal of a catalogue, and lists the goals that nobody can satisfy.

python -m benchmarks.measure_shopper --data FOLDER --goals synthetic human --out benchmarks/records/webshop_shopper.json
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from typing import Any

from benchmarks.measuring import measurement, options_parser
from skillc_gym.envs.webshop import WebShopEnv
from skillc_gym.envs.webshop.experts import Shopper
from skillc_gym.envs.webshop.goals import split_range
from skillc_gym.errors import ConfigError

SPLITS = ("test", "valid", "train")
LIMIT = 15


def measure(data: str | None, kinds: Sequence[str], tasks: int = 0) -> dict[str, dict[str, Any]]:
    """Scores by kind of goals and split.

    Args:
        data: The catalogue; None for the one that WEBSHOP_DATA names.
        kinds: Kinds of goals: synthetic, human.
        tasks: Tasks of each split, drawn at random; 0 for all.
    """
    report = {}
    for kind in kinds:
        env = WebShopEnv(data=data, goals=kind)
        for split in SPLITS:
            try:
                indices = list(split_range(split, len(env.goals)))
            except ConfigError:
                continue
            chosen = sorted(random.Random(0).sample(indices, min(tasks or len(indices), len(indices))))
            report[f"{kind} {split}"] = _summary([_shop(env, f"{kind}/{index}") for index in chosen])
    return report


def _shop(env: WebShopEnv, task_id: str) -> tuple[str, float, bool]:
    observation, info = env.reset(options={"task_id": task_id})
    shopper = Shopper(info["goal"], steps=LIMIT)
    reward = 0.0
    for _ in range(LIMIT):
        observation, reward, ended, _, info = env.step(shopper.act(observation, info["available_actions"]))
        if ended:
            break
    return task_id, reward, env.best_score(task_id) == 1.0


def _summary(rows: list[tuple[str, float, bool]]) -> dict[str, Any]:
    scores = [reward for _, reward, _ in rows]
    reachable = [reward == 1.0 for _, reward, can in rows if can]
    return {
        "tasks": len(rows),
        "mean_score": round(sum(scores) / len(rows), 4),
        "success": round(sum(score == 1.0 for score in scores) / len(rows), 4),
        "success_of_reachable": round(sum(reachable) / max(len(reachable), 1), 4),
        "unreachable_tasks": len(rows) - len(reachable),
        "unreachable": [task_id for task_id, _, can in rows if not can],
    }


def main(words: Sequence[str] | None = None) -> int:
    """Measures; returns 2 where that was refused."""
    parser = options_parser(__doc__)
    parser.add_argument("--data", default=None, help="catalogue; $WEBSHOP_DATA if left out, or 'generated'")
    parser.add_argument("--goals", nargs="+", default=["synthetic"], choices=["synthetic", "human"])
    parser.add_argument("--tasks", type=int, default=0, help="tasks of each split; all if left out")
    return measurement(parser, lambda options: measure(options.data, options.goals, options.tasks), words)


if __name__ == "__main__":
    sys.exit(main())
