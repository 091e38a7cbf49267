"""Compares the native ALFWorld engine with upstream on many games, and writes down what came of it.

    python -m benchmarks.parity_alfworld  # every validation game and 200 of train, against the cached upstream
    python -m benchmarks.parity_alfworld --oracle plain --games valid_unseen=24
    python -m benchmarks.parity_alfworld --wording older --games valid_unseen=12

Every finished game is one line of the record; a run that was stopped goes on where it left off. The summary beside the
record counts all lines of it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Container, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measuring import RECORDS, exit_status, versions_of
from benchmarks.parity.alfworld import Comparison, compare, older_wording, sum_up
from skillc_gym.envs.alfworld import SPLITS
from skillc_gym.envs.alfworld.data import open_games
from skillc_gym.envs.alfworld.engine import UpstreamProcess
from skillc_gym.errors import unknown_name
from skillc_lab.tables import write_record

Key = tuple[str, str, str, int]
DEFAULT_GAMES = ("valid_seen", "valid_unseen", "train=200")
PACKAGES = ("textworld", "alfworld", "fast-downward-textworld", "gymnasium", "numpy")


def main(words: Sequence[str] | None = None) -> int:
    """Runs the comparison; returns 1 if any game differed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=None, help="folder or archive of games (default: ALFWORLD_DATA)")
    parser.add_argument("--games", nargs="+", default=DEFAULT_GAMES, metavar="SPLIT[=N]", help="splits, or N of one")
    parser.add_argument("--oracle", choices=("cached", "plain"), default="cached", help="how upstream runs")
    parser.add_argument("--wording", choices=("file", "older"), default="file", help="words of the games")
    parser.add_argument("--seed", type=int, default=0, help="seed of the choice of games and of the walks")
    parser.add_argument("--out", type=Path, default=RECORDS / "parity_alfworld", help="record, without suffix")
    options = parser.parse_args(words)
    found: list[int] = []
    return exit_status(lambda: found.append(_run(options))) or found[0]


def _run(options: argparse.Namespace) -> int:
    record = options.out.with_suffix(".jsonl")
    record.parent.mkdir(parents=True, exist_ok=True)
    done = {_key(found): found for found in _read(record)}
    before = len(done)
    process = UpstreamProcess(cached=options.oracle == "cached")
    try:
        for task_id, raw in _chosen(options, done):
            found = compare(task_id, raw, process, oracle=options.oracle, seed=options.seed, wording=options.wording)
            done[_key(found)] = found
            with record.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(found)) + "\n")
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
        "seeds": sorted({comparison.seed for comparison in found}),
        "versions": versions_of(*PACKAGES),
        "games": len({comparison.task_id for comparison in found}),
        "answers": sum(comparison.answers for comparison in found),
        "differences": sum(len(comparison.differences) for comparison in found),
        "groups": groups,
    }
    write_record(options.out.with_suffix(".json"), summary)


if __name__ == "__main__":
    raise SystemExit(main())
