"""Makes thousands of games and proves them: ``python -m benchmarks.prove_games``.

Every game is planned and played to its end by the planner; a sample is played in upstream as well. Seconds are those of
one core, as the process itself counts them, so that other work on the machine does not matter.
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
from skillc_gym.envs.alfworld import TASK_TYPES
from skillc_gym.envs.alfworld.generate import SIZES, GeneratedGames, proved_by_planner, proved_by_upstream
from skillc_gym.errors import SkillCError
from trainers.tracking import make_folder


def proof(size: str, games: int, upstream: int, seed: int) -> dict[str, Any]:
    """Makes and proves the games of one size.

    Args:
        size: The size.
        games: How many, at least.
        upstream: How many of them to play in upstream.
        seed: Seed of the family.

    Raises:
        InvalidGameError: If a game was not won.
        MissingExtraError: If upstream is asked for and not installed.
    """
    started = time.process_time()
    made = GeneratedGames("train", seed=seed, games_per_type=-(-games // len(TASK_TYPES)), size=size)
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
        "won_in_upstream": proved_by_upstream(made, upstream) if upstream else 0,
    }


def _markdown(found: Sequence[dict[str, Any]], command: str) -> str:
    lines = [
        "# Generated games, proved",
        "",
        "Every game is planned by the planner and its plan played to the end; a sample is played in upstream too. A "
        "game that is not won stops the command. Making includes the content of each game file; seconds are those of "
        "one core.",
        "",
        "| size | games | made in | won by the planner | mean plan | planned and loaded in | won in upstream |",
        "|---|---|---|---|---|---|---|",
        *(
            f"| `{one['size']}` | {one['games']:,} | {one['seconds_to_make']:.0f} s | all {one['won_by_planner']:,} "
            f"| {one['mean_plan']:.1f} | {one['seconds_to_plan']:.0f} s | all {one['won_in_upstream']} played |"
            for one in found
        ),
        "",
        f"`{command}`",
        "",
    ]
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        description="Make and prove generated games.", formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--games", type=int, default=10_000, help="how many of each size")
    parser.add_argument("--sizes", nargs="+", default=["small", "real"], help=f"some of: {', '.join(SIZES)}")
    parser.add_argument("--upstream", type=int, default=30, help="how many of each size to play in upstream")
    parser.add_argument("--seed", type=int, default=7, help="seed of the family of games")
    parser.add_argument("--out", type=Path, default=Path("docs/results/prove_games"), help="record, without suffix")
    args = parser.parse_args(argv)
    try:
        make_folder(args.out.parent)
        found = [proof(size, args.games, args.upstream, args.seed) for size in args.sizes]
    except SkillCError as error:
        print(f"prove_games: {error}", file=sys.stderr)
        return 2
    write_record(args.out.with_suffix(".json"), {"seed": args.seed, "proofs": found})
    words = f"--games {args.games} --sizes {' '.join(args.sizes)} --upstream {args.upstream}"
    words += "" if args.seed == parser.get_default("seed") else f" --seed {args.seed}"
    text = _markdown(found, f"python -m benchmarks.prove_games {words}")
    args.out.with_suffix(".md").write_text(text, encoding="utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
