"""Writes generated ALFWorld games in upstream's layout: ``python -m scripts.make_games --out games``.

The folder can then be played here (``data=games``) and with upstream itself.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from skillc_gym.envs.alfworld.data.sources import GAME_FILE
from skillc_gym.envs.alfworld.generate import KNOBS, SIZES, GeneratedGames
from skillc_gym.envs.alfworld.generate.house import SCENES
from skillc_gym.envs.alfworld.generate.proofs import proved_by_planner, proved_by_upstream
from skillc_gym.envs.alfworld.tasks import SHORT_NAMES, SPLITS
from skillc_gym.errors import ConfigError, SkillCError

LAYOUT = "json_2.1.1"
_RANGES = ("receptacles", "objects")


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
    parser.add_argument("--mix", nargs="+", help="weights of the task types: 'real', or such as heat=2 pick=1")
    parser.add_argument("--difficulty", nargs="+", type=float, help="0 to 1, one or several: sets all knobs at once")
    for name in _RANGES:
        parser.add_argument(f"--{name}", nargs="+", type=int, help="how many, or the lowest and the highest number")
    parser.add_argument("--closed", type=float, help="share of doors among what may have one, 0 to 1")
    parser.add_argument("--hidden", type=float, help="chance that a wanted object begins behind a door, 0 to 1")
    parser.add_argument("--spares", type=int, help="further objects of the wanted kind")
    parser.add_argument("--rooms", nargs="+", help="kinds of room that tasks are set in")
    parser.add_argument("--prove", action="store_true", help="have every game won by the planner")
    parser.add_argument("--prove-upstream", type=int, default=0, help="games of each split to have won in upstream too")
    return parser.parse_args(argv)


def options(args: argparse.Namespace) -> dict[str, Any]:
    """The generator's options, as ``generator=`` takes them.

    Raises:
        ConfigError: If the mix cannot be read.
    """
    chosen = {name: getattr(args, name) for name in ("seed", "games_per_type", "size", "scenes")}
    given = {"mix": _mix(args.mix), "difficulty": args.difficulty, **{name: getattr(args, name) for name in KNOBS}}
    for name in (*_RANGES, "difficulty"):
        if given[name] is not None and len(given[name]) == 1:
            given[name] = given[name][0]
    return chosen | {name: value for name, value in given.items() if value is not None}


def _mix(words: Sequence[str] | None) -> dict[str, float] | str | None:
    if words is None or (len(words) == 1 and "=" not in words[0]):
        return words[0] if words else None
    try:
        return {name: float(weight) for name, weight in (word.split("=") for word in words)}
    except ValueError as error:
        raise ConfigError(f"--mix takes 'real' or weights such as heat=2 pick=1; got {' '.join(words)}") from error


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


def report(games: GeneratedGames, args: argparse.Namespace) -> dict[str, Any]:
    """How many games of a set there are, and how many were won in the proofs that were asked for.

    Raises:
        InvalidGameError: If a game was not won.
        MissingExtraError: If upstream is asked for and not installed.
    """
    found: dict[str, Any] = {"games": len(games.task_ids)}
    if args.prove:
        found["won_by_planner"] = len(proved_by_planner(games))
    if args.prove_upstream:
        found["won_in_upstream"] = proved_by_upstream(games, args.prove_upstream)
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    args = _arguments(argv)
    try:
        _require_empty(args.out)
        sets = {split: GeneratedGames(split, args.task_types, **options(args)) for split in args.splits}
        proofs = {split: report(games, args) for split, games in sets.items()}
        for split, games in sets.items():
            write_games(games, args.out, split)
    except (SkillCError, OSError) as error:
        print(f"make_games: {error}", file=sys.stderr)
        return 2
    print(json.dumps(proofs, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
