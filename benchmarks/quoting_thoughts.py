"""Counts how often the thoughts of won episodes with the skill quote it, the rows that relabelling imitates.

python -m benchmarks.quoting_thoughts --out benchmarks/records/quoting_thoughts.json
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trainers.config import TrainConfig
from trainers.evaluation import evaluate_policy
from trainers.recipes import quoting_turns
from trainers.tracking import provenance, write_json
from trainers.warmstart import small_policy_settings

WORLDS = {"alfworld": ("valid_unseen", 1), "webshop": ("test", 8)}
"""Held-out split, and how many times as many tasks per type."""
WORDS = (1, 2, 3, 4)


def measure(env: str, per_type: int) -> dict[str, Any]:
    """Plays the hard start, at the training temperature, and counts turns."""
    split, times = WORLDS[env]
    settings = {**small_policy_settings(env), "model": "shipped-hard", "split": split, "eval_temperature": 1.0}
    report = evaluate_policy(TrainConfig(**settings), per_type=per_type * times).paired
    won = [episode for episode in report.episodes if episode.condition and episode.won]
    quoting = {words: [quotes for episode in won for quotes in quoting_turns(episode, words)] for words in WORDS}
    return {
        "episodes": len(won),
        "turns": sum(len(episode.turns) for episode in won),
        "quoting_turns": {str(words): sum(turns) for words, turns in quoting.items()},
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser(description="Count thoughts that quote the skill, by words in a row.")
    parser.add_argument("--per-type", type=int, default=8, help="tasks per type in the houses, an eighth of the shop's")
    parser.add_argument("--out", type=Path, required=True, help="record to write")
    args = parser.parse_args(argv)
    worlds = {env: measure(env, args.per_type) for env in WORLDS}
    write_json(args.out, {"start": "shipped-hard", "temperature": 1.0, "worlds": worlds, "versions": provenance()})
    return 0


if __name__ == "__main__":
    sys.exit(main())
