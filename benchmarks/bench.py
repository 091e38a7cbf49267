"""Measures the environments beside their upstream counterparts, prints a table and writes it to docs/results.

python -m benchmarks.bench                   # everything
python -m benchmarks.bench alfworld --quick  # one part, with fewer repetitions
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks import bench_alfworld, bench_webshop
from benchmarks.bench_table import Bench, markdown
from benchmarks.revision import write_record
from skillc_gym.errors import SkillCError
from skillc_gym.version import __version__

RESULTS = Path("docs/results")
PARTS: dict[str, Callable[[argparse.Namespace], Bench]] = {
    "alfworld": bench_alfworld.measure,
    "webshop": bench_webshop.measure,
}
"""Name of each part -> what measures it; a new environment adds its line here."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the chosen parts; returns 1 if a goal was missed, 2 if a part could not run."""
    options = _parser().parse_args(arguments)
    met = True
    for name in options.parts or PARTS:
        try:
            bench = PARTS[name](options)
        except SkillCError as error:
            print(f"{name}: {error}", file=sys.stderr)
            return 2
        _write(options, name, bench)
        met = met and bench.met
    return 0 if met else 1


def _write(options: argparse.Namespace, name: str, bench: Bench) -> None:
    command = " ".join(["python -m benchmarks.bench", *sys.argv[1:]])
    versions = {"skillc-gym": __version__, "python": platform.python_version(), **bench.versions}
    text = markdown(bench, command, versions)
    print(text)
    if options.out is None and bench.stand_in:
        print("These are stand-ins for the real data, so nothing was written; --out FOLDER writes them.")
    elif not options.quick:
        folder = options.out or RESULTS
        folder.mkdir(parents=True, exist_ok=True)
        record = {"command": command, "versions": versions, "cores": os.cpu_count(), **bench.record()}
        path = folder / f"bench_{name}"
        write_record(path.with_suffix(".json"), record)
        path.with_suffix(".md").write_text(text, encoding="utf-8")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Measure the environments beside upstream.")
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="what to measure (default: everything)")
    parser.add_argument("--data", default=None, help="ALFWorld games (default: ALFWORLD_DATA, else generated ones)")
    parser.add_argument("--webshop", default=None, help="WebShop products (default: WEBSHOP_DATA, else generated ones)")
    parser.add_argument("--split", default="valid_unseen", help="split of the ALFWorld games")
    parser.add_argument("--no-upstream", action="store_true", help="leave upstream out")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions; nothing is written")
    parser.add_argument("--out", type=Path, help="folder of the tables (default: docs/results, for real data)")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
