"""Fuzzes a reader of foreign input, or the games, with atheris.

``python -m benchmarks.fuzz loader --seconds 600 --out benchmarks/records``.

A target may only succeed or raise SkillCError. An input that takes over a second of processor time, or more memory than
the limit, ends the run like an exception does; the input is written to ``--findings``. Runs begin with the inputs of
``corpus/TARGET.json``; ``--keep 40`` puts as many of a run's own into it. ``--out`` records what a run found.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import re
import subprocess
import sys
import tempfile
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.fuzz.target import NAMES, bounded, load
from benchmarks.measuring import versions_of
from skillc_gym.errors import missing_extra
from skillc_lab.tables import read_json
from trainers.tracking import provenance, write_json

HANGS_AFTER = 60
SEEDS = 128
"""Inputs to begin with besides the kept ones: random bytes."""
CORPUS = Path(__file__).parent / "corpus"
"""Kept inputs of each target: a list in hexadecimal digits."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the fuzzer until the time is over or something breaks."""
    args = _arguments(argv)
    try:
        import atheris
    except ImportError as error:
        raise missing_extra("atheris", "fuzz") from error
    if args.out is not None:
        return recorded(args)
    args.findings.mkdir(parents=True, exist_ok=True)
    target = load(args.target)
    run = bounded(target.make(atheris))
    _instrument(atheris, target.instrumented)
    with tempfile.TemporaryDirectory(prefix="skillc-corpus-") as folder:
        work = args.work or Path(folder)
        for number, content in enumerate([*_random(), *kept_inputs(args.target)]):
            (work / str(number)).write_bytes(content)
        atheris.Setup([*_flags(args), str(work)], run)
        atheris.Fuzz()
    return 0


def _random() -> list[bytes]:
    return [random.Random(number).randbytes(64 + 8 * number) for number in range(SEEDS)]


def kept_inputs(target: str) -> list[bytes]:
    """The inputs of a target that are kept from earlier runs."""
    path = CORPUS / f"{target}.json"
    return [bytes.fromhex(text) for text in json.loads(path.read_text())] if path.is_file() else []


def _keep(target: str, work: Path, most: int) -> None:
    """Keeps some inputs of every length by which a run came to something new; libFuzzer names them by their hash."""
    found = sorted((path.read_bytes() for path in work.glob("?" * 40)), key=len)
    kept = list(dict.fromkeys([*kept_inputs(target), *found[:: max(1, len(found) // most)]]))[:most]
    CORPUS.mkdir(exist_ok=True)
    (CORPUS / f"{target}.json").write_text(json.dumps([content.hex() for content in kept], indent=0) + "\n")


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", choices=NAMES)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--memory", type=int, default=1024, help="limit in MiB")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--findings", type=Path, default=Path("runs/fuzz"), help="folder of inputs that broke a target")
    parser.add_argument("--keep", type=int, default=0, help="with --out, keep so many inputs for later runs")
    parser.add_argument("--work", type=Path, help="folder of the inputs while it runs (default: a temporary one)")
    parser.add_argument("--out", type=Path, help="folder of the record, fuzz.json")
    return parser.parse_args(argv)


def _flags(args: argparse.Namespace) -> list[str]:
    return [
        sys.argv[0],
        f"-max_total_time={args.seconds}",
        f"-rss_limit_mb={args.memory}",
        f"-timeout={HANGS_AFTER}",
        f"-seed={args.seed}",
        f"-artifact_prefix={args.findings}/",
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


_STATISTICS = {
    "runs": "number_of_executed_units",
    "runs_per_second": "average_exec_per_sec",
    "slowest_run_seconds": "slowest_unit_time_sec",
    "peak_megabytes": "peak_rss_mb",
}
_STATISTIC = r"stat::{}:\s*(\d+)"
_COVERAGE = re.compile(r"cov: (\d+) ft: (\d+) corp: (\d+)")
_FINDING = re.compile(r"(?:ERROR: libFuzzer: |=== Uncaught Python exception: ===\n)(.{1,200})")


def recorded(args: argparse.Namespace) -> int:
    """Fuzzes in a process of its own, since the fuzzer never returns, and writes ``fuzz.json``; other entries stay."""
    asked = {name: getattr(args, name) for name in ("seconds", "memory", "seed", "findings")}
    with tempfile.TemporaryDirectory(prefix="skillc-corpus-") as work:
        options = [word for name, value in {**asked, "work": work}.items() for word in (f"--{name}", str(value))]
        command = [sys.executable, "-m", "benchmarks.fuzz", args.target, *options]
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False
        )
        if args.keep:
            _keep(args.target, Path(work), args.keep)
    sys.stderr.write(done.stdout[-4000:])
    entry = {"seconds": args.seconds, "memory_limit_megabytes": args.memory, "seed": args.seed}
    path = args.out / "fuzz.json"
    known = read_json(path) if path.exists() else {}
    found = {**entry, **read_report(done.stdout), "versions": versions_of("atheris"), "git": provenance()["git"]}
    args.out.mkdir(parents=True, exist_ok=True)
    write_json(path, dict(sorted({**known, args.target: found}.items())))
    return done.returncode


def read_report(text: str) -> dict[str, Any]:
    """Reads what libFuzzer says at its end: counts, coverage and what it stumbled over."""
    found = {name: re.search(_STATISTIC.format(key), text) for name, key in _STATISTICS.items()}
    report: dict[str, Any] = {name: int(match[1]) if match else None for name, match in found.items()}
    reached = _COVERAGE.findall(text)
    report["branches_reached"] = int(reached[-1][0]) if reached else None
    report["inputs_kept"] = int(reached[-1][2]) if reached else None
    report["findings"] = sorted({finding.strip() for finding in _FINDING.findall(text)})
    return report


if __name__ == "__main__":
    sys.exit(main())
