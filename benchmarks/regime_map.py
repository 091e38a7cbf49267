"""The regime map and the learning curves of several studies, drawn from their records.

``python -m benchmarks.regime_map docs/results/first_table.json MORE.json --out docs/results/regime_map`` writes
``regime_map.png`` and ``regime_map_curves.png``.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

from benchmarks.status import exit_status
from skillc_lab.studies import draw_curves, draw_regime_map, read_record, regimes_of

__all__ = ["main"]


def main(words: list[str] | None = None) -> int:
    """Draws; 2 where a record is missing or has nothing to draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", type=Path, nargs="+", help="records of `skillc study`")
    parser.add_argument("--out", type=Path, required=True, help="pictures, without ending")
    parser.add_argument("--methods", nargs="*", default=(), help="these beside the baseline alone")
    options = parser.parse_args(words)
    return exit_status(partial(_draw, options))


def _draw(options: argparse.Namespace) -> None:
    regimes = regimes_of([read_record(path) for path in options.records])
    options.out.parent.mkdir(parents=True, exist_ok=True)
    draw_regime_map(regimes, options.out.with_suffix(".png"), methods=options.methods)
    draw_curves(regimes, options.out.with_name(f"{options.out.name}_curves.png"), methods=options.methods)


if __name__ == "__main__":
    sys.exit(main())
