"""Measures the environments and their upstream counterparts, in one run, and writes records of real data.

python -m benchmarks.bench                   # everything
python -m benchmarks.bench alfworld --quick  # one part, with fewer repetitions
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks import bench_alfworld, bench_webshop
from benchmarks.measuring import RECORDS, Bench, exit_status, versions_of
from skillc_lab.tables import write_record

PARTS: Mapping[str, Callable[[argparse.Namespace], Bench]] = {
    "alfworld": bench_alfworld.measure,
    "webshop": bench_webshop.measure,
}
"""Name of each part -> what measures it; a new environment adds its line here."""


def main(words: Sequence[str] | None = None) -> int:
    """Runs the chosen parts; returns 1 if a goal was missed, 2 if a part could not run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="what to measure (default: everything)")
    parser.add_argument("--data", default=None, help="ALFWorld games (default: ALFWORLD_DATA, else generated ones)")
    parser.add_argument("--webshop", default=None, help="WebShop products (default: WEBSHOP_DATA, else generated ones)")
    parser.add_argument("--split", default="valid_unseen", help="split of the ALFWorld games")
    parser.add_argument("--no-upstream", action="store_true", help="leave upstream out")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions; nothing is written")
    parser.add_argument("--out", type=Path, help="folder of the records (default: benchmarks/records, for real data)")
    options = parser.parse_args(words)
    return exit_status(lambda: max(_measured(options, name) for name in options.parts or PARTS))


def _measured(options: argparse.Namespace, name: str) -> int:
    """Measures a part and writes its record; 1 if a goal was missed."""
    bench = PARTS[name](options)
    print(f"{name}: {bench.subject}\n\n{bench.table().text()}")
    if options.out is None and bench.stand_in:
        print("These are stand-ins for the real data, so nothing was written; --out FOLDER writes them.")
    elif not options.quick:
        record: dict[str, Any] = {
            "command": " ".join(["python -m benchmarks.bench", *sys.argv[1:]]),
            "versions": versions_of("gymnasium", "numpy", "textworld", "alfworld"),
            "cores": os.cpu_count(),
            "subject": bench.subject,
            "figures": [{**asdict(figure), "met": figure.met} for figure in bench.figures],
        }
        write_record((options.out or RECORDS) / f"bench_{name}.json", record)
    return int(not all(each.met for each in bench.figures))


if __name__ == "__main__":
    sys.exit(main())
