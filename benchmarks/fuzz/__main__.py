"""Fuzzes a reader of foreign input, or the games, with atheris.

``python -m benchmarks.fuzz loader --seconds 600 --out docs/results``.

A target may only succeed or raise SkillCError. An input that takes over a second of processor time, or more memory than
the limit, ends the run like an exception does; the input is written to the current folder. ``--out`` records what a run
found.
"""

from __future__ import annotations

import argparse
import gc
import random
import sys
import tempfile
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.fuzz.record import recorded
from benchmarks.fuzz.target import NAMES, bounded, load
from skillc_gym.errors import missing_extra

HANGS_AFTER = 60
SEEDS = 128
"""Inputs to begin with: random bytes."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the fuzzer until the time is over or something breaks."""
    args = _arguments(argv)
    try:
        import atheris
    except ImportError as error:
        raise missing_extra("atheris", "fuzz") from error
    if args.out is not None:
        return recorded(args.target, seconds=args.seconds, memory=args.memory, seed=args.seed, out=args.out)
    target = load(args.target)
    run = bounded(target.make(atheris))
    _instrument(atheris, target.instrumented)
    with tempfile.TemporaryDirectory(prefix="skillc-corpus-") as corpus:
        for number in range(SEEDS):
            (Path(corpus) / str(number)).write_bytes(random.Random(number).randbytes(64 + 8 * number))
        atheris.Setup([*_flags(args), corpus], run)
        atheris.Fuzz()
    return 0


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", choices=NAMES)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--memory", type=int, default=1024, help="limit in MiB")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="folder of the record fuzz.md")
    return parser.parse_args(argv)


def _flags(args: argparse.Namespace) -> list[str]:
    return [
        sys.argv[0],
        f"-max_total_time={args.seconds}",
        f"-rss_limit_mb={args.memory}",
        f"-timeout={HANGS_AFTER}",
        f"-seed={args.seed}",
        "-max_len=4096",
        "-len_control=0",  # the first few bytes only choose what the others change
        "-print_final_stats=1",
    ]


def _instrument(atheris: Any, beginnings: tuple[str, ...]) -> None:
    """Lets the fuzzer see the branches of what reads files; all that is imported would take minutes."""
    functions = [found for found in gc.get_objects() if isinstance(found, types.FunctionType)]
    for function in functions:
        if str(function.__module__).startswith(beginnings):
            atheris.instrument_func(function)


if __name__ == "__main__":
    sys.exit(main())
