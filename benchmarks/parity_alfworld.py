"""Compares the native ALFWorld engine with upstream on many games, and writes down what came of it.

    python -m benchmarks.parity_alfworld  # every validation game and 200 of train, against the cached upstream
    python -m benchmarks.parity_alfworld --oracle plain --games valid_unseen=24
    python -m benchmarks.parity_alfworld --wording older --games valid_unseen=12

Every finished game is one line of the record; a run that was stopped goes on where it left off. The summary beside the
record counts all lines of it.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import platform
import sys
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.parity.alfworld import Comparison, as_record, compare, older_wording, sum_up
from benchmarks.revision import write_record
from skillc_gym.envs.alfworld import SPLITS
from skillc_gym.envs.alfworld.data import open_games
from skillc_gym.envs.alfworld.engine import UpstreamProcess
from skillc_gym.errors import SkillCError, unknown_name
from skillc_gym.version import __version__

Key = tuple[str, str, str, int]
DEFAULT_GAMES = ("valid_seen", "valid_unseen", "train=200")
PACKAGES = ("textworld", "alfworld", "fast-downward-textworld", "gymnasium", "numpy")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the comparison; returns 1 if any game differed."""
    options = _parser().parse_args(arguments)
    try:
        return _run(options)
    except SkillCError as error:
        print(error, file=sys.stderr)
        return 2


def _run(options: argparse.Namespace) -> int:
    record = options.out.with_suffix(".jsonl")
    record.parent.mkdir(parents=True, exist_ok=True)
    done = {} if options.fresh else {_key(found): found for found in _read(record)}
    before = len(done)
    if options.fresh:
        record.unlink(missing_ok=True)
    process = UpstreamProcess(cached=options.oracle == "cached")
    try:
        for task_id, raw in _chosen(options, done):
            found = compare(task_id, raw, process, oracle=options.oracle, seed=options.seed, wording=options.wording)
            done[_key(found)] = found
            with record.open("a", encoding="utf-8") as file:
                file.write(json.dumps(as_record(found)) + "\n")
            count, seconds = len(found.differences), found.seconds_upstream
            print(f"{len(done):5d}  {count:3d} differences  {seconds:6.1f} s  {task_id}", flush=True)
    except KeyboardInterrupt:
        print(f"\nStopped; the same command goes on from {record}.")
    finally:
        process.close()
        _write_summary(options, list(done.values()))
        print(f"{len(done) - before} comparisons made now, {before} read from {record}.")
    return int(any(found.differences for found in done.values()))


def _chosen(options: argparse.Namespace, done: Container[Key]) -> Iterator[tuple[str, dict[str, Any]]]:
    for wanted in options.games:
        split, _, count = wanted.partition("=")
        if split not in SPLITS:
            raise unknown_name("split", split, SPLITS)
        games = open_games(options.data, split=split)
        for task_id in _sample(games.task_ids, int(count) if count else None, options.seed):
            if (task_id, options.oracle, options.wording, options.seed) not in done:
                raw = games.raw(task_id)
                yield task_id, older_wording(raw) if options.wording == "older" else raw


def _sample(task_ids: Sequence[str], count: int | None, seed: int) -> list[str]:
    if count is None or count >= len(task_ids):
        return list(task_ids)
    chosen = np.random.default_rng(seed).choice(len(task_ids), size=count, replace=False)
    return [task_ids[index] for index in sorted(chosen.tolist())]


def _key(found: Comparison) -> Key:
    return found.task_id, found.oracle, found.wording, found.seed


def _read(record: Path) -> list[Comparison]:
    if not record.exists():
        return []
    return [Comparison(**json.loads(line)) for line in record.read_text(encoding="utf-8").splitlines()]


def _write_summary(options: argparse.Namespace, found: list[Comparison]) -> None:
    groups = sum_up(found)
    summary = {
        "commands": _commands(groups, sorted({comparison.seed for comparison in found})),
        "seeds": sorted({comparison.seed for comparison in found}),
        "versions": {"skillc-gym": __version__, "python": platform.python_version(), **_versions()},
        "games": len({comparison.task_id for comparison in found}),
        "answers": sum(comparison.answers for comparison in found),
        "differences": sum(len(comparison.differences) for comparison in found),
        "groups": groups,
    }
    write_record(options.out.with_suffix(".json"), summary)
    options.out.with_suffix(".md").write_text(_markdown(summary), encoding="utf-8")


def _commands(groups: Sequence[Mapping[str, Any]], seeds: Sequence[int]) -> list[str]:
    """The commands that make the whole record anew, whichever invocation wrote the last line of it."""
    wanted: dict[tuple[str, str], list[str]] = {}
    for group in groups:
        wanted.setdefault((group["oracle"], group["wording"]), []).append(f"{group['split']}={group['games']}")
    return [
        f"python -m benchmarks.parity_alfworld --oracle {oracle} --wording {wording} --seed {seed} "
        f"--games {' '.join(games)}"
        for seed in seeds
        for (oracle, wording), games in wanted.items()
    ]


def _versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _markdown(summary: dict[str, Any]) -> str:
    columns = list(summary["groups"][0]) if summary["groups"] else []
    rows = [[str(group[column]) for column in columns] for group in summary["groups"]]
    table = [columns, ["---"] * len(columns), *rows]
    lines = ["| " + " | ".join(name.replace("_", " ") for name in row) + " |" for row in table]
    versions = ", ".join(f"{name} {version}" for name, version in summary["versions"].items())
    return "\n".join(
        [
            "# Native ALFWorld engine against upstream",
            "",
            f"{summary['games']} games, {summary['answers']:,} answers compared (feedback, admissible commands, won): "
            f"**{summary['differences']} differences**.",
            "",
            *lines,
            "",
            "Per game: the walkthrough and 12 random commands after the win, and two random walks of 36 commands that "
            "mix admissible (70 %), inadmissible and malformed ones. `cached` is upstream that remembers the parses of "
            "its own grammar; `plain` is upstream as installed. `older` is the game's grammar rewritten into the words "
            "of alfworld up to 0.3.",
            "",
            "Made by the following; each leaves out what the record beside this file holds already, and `--fresh` "
            "compares everything anew:",
            "",
            *(f"- `{command}`" for command in summary["commands"]),
            "",
            f"With {versions}.",
            "",
        ]
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Compare the native ALFWorld engine with upstream.")
    parser.add_argument("--data", default=None, help="folder or archive of games (default: ALFWORLD_DATA)")
    parser.add_argument("--games", nargs="+", default=DEFAULT_GAMES, metavar="SPLIT[=N]", help="splits, or N of one")
    parser.add_argument("--oracle", choices=("cached", "plain"), default="cached", help="how upstream runs")
    parser.add_argument("--wording", choices=("file", "older"), default="file", help="words of the games")
    parser.add_argument("--fresh", action="store_true", help="forget the record and compare everything anew")
    parser.add_argument("--seed", type=int, default=0, help="seed of the choice of games and of the walks")
    parser.add_argument("--out", type=Path, default=Path("docs/results/parity_alfworld"), help="record, without suffix")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
