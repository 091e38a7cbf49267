"""Writes generated ALFWorld games in upstream's layout: ``python -m scripts.make_games --out games``.

The folder can then be played here (``data=games``) and with upstream itself.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from skillc_gym.alfworld.generate import SIZES, GeneratedGames
from skillc_gym.alfworld.generate.house import SCENES
from skillc_gym.alfworld.sources import GAME_FILE
from skillc_gym.alfworld.tasks import SHORT_NAMES, SPLITS
from skillc_gym.errors import ConfigError, SkillCError

LAYOUT = "json_2.1.1"


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder to write, new or empty")
    parser.add_argument("--splits", nargs="+", default=list(SPLITS), help="splits to write")
    parser.add_argument(
        "--task-types", nargs="+", default=list(SHORT_NAMES.values()), help="task types, by full or short name"
    )
    parser.add_argument("--games-per-type", type=int, default=50, help="games of each type in each split")
    parser.add_argument("--size", default="small", help=f"size of the houses: {', '.join(SIZES)}")
    parser.add_argument("--scenes", type=int, default=SCENES, help="layouts of each kind of room outside valid_unseen")
    parser.add_argument("--seed", type=int, default=0, help="seed of the family of games")
    return parser.parse_args(argv)


def _require_empty(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder} exists and is not an empty folder; give a new --out, or empty it first.")


def _show(split: str, done: int, total: int) -> None:
    end = "\n" if done == total else "\r" if sys.stderr.isatty() else ""
    if end:
        print(f"{split:>14} {done:5d}/{total}", end=end, file=sys.stderr, flush=True)


def write_games(games: GeneratedGames, out: Path, split: str) -> None:
    """Writes every game of a set to ``<out>/json_2.1.1/<split>/<task folder>/<trial folder>/game.tw-pddl``.

    Raises:
        OSError: If a file cannot be written.
    """
    for done, task_id in enumerate(games.task_ids, start=1):
        folder = out / LAYOUT / task_id
        folder.mkdir(parents=True)
        (folder / GAME_FILE).write_text(json.dumps(games.raw(task_id)), encoding="utf-8")
        _show(split, done, len(games.task_ids))


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    args = _arguments(argv)
    try:
        _require_empty(args.out)
        sets = {
            split: GeneratedGames(
                split,
                args.task_types,
                seed=args.seed,
                games_per_type=args.games_per_type,
                size=args.size,
                scenes=args.scenes,
            )
            for split in args.splits
        }
        for split, games in sets.items():
            write_games(games, args.out, split)
    except (SkillCError, OSError) as error:
        print(f"make_games: {error}", file=sys.stderr)
        return 2
    print(json.dumps({split: {"games": len(games.task_ids)} for split, games in sets.items()}, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
