"""The tables of a study's page, from its record: the whole table, and success seed by seed.

``python -m benchmarks.study_page docs/results/confirmation.json`` renews what stands between the marks of
``docs/results/confirmation.md``, and the rows in the record, which are what the present code makes of its cells.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks.page_block import write_block
from benchmarks.status import exit_status
from skillc_lab.studies import ComparisonRecord, comparison_table, read_record
from trainers.tracking import read_object, write_json

__all__ = ["main", "seed_table", "study_tables"]


def study_tables(record: ComparisonRecord) -> str:
    """A section for every starting point: its table, and success by seed."""
    return "\n\n".join(
        f"## {start}\n\n{table.markdown()}\n\n{seed_table(record, start)}"
        for start in record.starts
        for table in [comparison_table(record.rows(start), record.untrained(start))]
    )


def seed_table(record: ComparisonRecord, start: str) -> str:
    """Success in per cent after training by method and seed, without and with the skill."""
    cells = record.cells(start)
    seeds = sorted({cell.seed for cell in cells})
    found = {(cell.method, cell.seed): f"{100 * cell.without:.1f} / {100 * cell.with_skill:.1f}" for cell in cells}
    lines = [f"| without / with, by seed | {' | '.join(map(str, seeds))} |", "|---" * (1 + len(seeds)) + "|"]
    for method in dict.fromkeys(cell.method for cell in cells):
        lines.append(f"| {method} | {' | '.join(found.get((method, seed), '') for seed in seeds)} |")
    return "\n".join(lines)


def _renew(path: Path) -> None:
    record, values = read_record(path), read_object(path)
    values["rows"] = {start: [row.to_json() for row in record.rows(start)] for start in record.starts}
    write_block(path.with_suffix(".md"), "tables", study_tables(record))
    write_json(path, values)


def main(words: Sequence[str] | None = None) -> int:
    """Renews page and record; returns 2 where that was refused."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("record", type=Path, help="record of a study, beside its page")
    return exit_status(partial(_renew, parser.parse_args(words).record))


if __name__ == "__main__":
    sys.exit(main())
