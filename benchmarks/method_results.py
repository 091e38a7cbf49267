"""What every method came to, from the records of studies, as a table of the page of methods.

python -m benchmarks.method_results docs/results/first_table.json docs/results/first_table_easy.json \
    --page docs/methods.md
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks.page_block import write_block
from benchmarks.status import exit_status
from skillc_gym.errors import ConfigError
from trainers.comparison.record import ComparisonRecord, read_record
from trainers.comparison.regimes import Regime, regimes_of
from trainers.comparison.table import MethodRow
from trainers.evaluation.stats import Interval

__all__ = ["main", "results_table"]


def results_table(records: Sequence[ComparisonRecord]) -> str:
    """Success without the skill after training and what may be said of it beside the baseline's, by starting point.

    Args:
        records: Of studies of one world, budget and baseline, the starting points all different.

    Returns:
        A sentence on the runs and a table in Markdown, a row per method in the records' order.

    Raises:
        ConfigError: They are of different worlds, budgets, numbers of tasks or baselines.
    """
    regimes = regimes_of(records)
    runs = {(regime.env, regime.budget, len(regime.cells[0].outcomes)) for regime in regimes}
    if len(runs) > 1:
        raise ConfigError(f"One table is of one world, budget and number of tasks; these records have {sorted(runs)}")
    methods = list(dict.fromkeys(row.method for regime in regimes for row in regime.rows))
    heads = [head for regime in regimes for head in (_head(regime), "beside the baseline")]
    lines = [f"| method | {' | '.join(heads)} |", "|---" * (1 + len(heads)) + "|"]
    for method in methods:
        cells = [cell for regime in regimes for cell in _cells(regime.row(method))]
        lines.append(f"| `{method}` | {' | '.join(cells)} |")
    return "\n".join([_sentence(records[0], regimes), "", *lines])


def _sentence(record: ComparisonRecord, regimes: Sequence[Regime]) -> str:
    tasks = len(regimes[0].cells[0].outcomes)
    return (
        f"Success without the skill in per cent on {tasks} held-out tasks (`{regimes[0].env}`) after {record.budget:,} "
        "generated tokens, with 95 % intervals over seeds and tasks, and the difference from the baseline, "
        f"`{record.baseline}`, with a verdict after Holm's step over the methods of a starting point. "
        f"{_seeds(regimes)} each, unless the verdict says one."
    )


def _seeds(regimes: Sequence[Regime]) -> str:
    return f"{max(len(row.seeds) for regime in regimes for row in regime.rows)} seeds"


def _head(regime: Regime) -> str:
    before = "" if regime.before is None else f", {100 * regime.before.without:.1f} before"
    return f"{regime.start} start{before}"


def _cells(row: MethodRow | None) -> list[str]:
    if row is None:
        return ["not run", ""]
    return [f"{100 * row.without.mean:.1f}{_within(row.without.interval)}", _beside(row)]


def _beside(row: MethodRow) -> str:
    if row.against is None:
        return "(baseline)"
    found = row.against.difference
    return f"{100 * found.mean:+.1f}{_within(found.interval)}: {row.against.verdict}"


def _within(interval: Interval | None) -> str:
    return "" if interval is None else f" [{100 * interval.low:.0f}, {100 * interval.high:.0f}]"


def _draw(options: argparse.Namespace) -> None:
    write_block(options.page, "results", results_table([read_record(path) for path in options.records]))


def main(words: list[str] | None = None) -> int:
    """Writes the table into the page; returns 2 where that was refused."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", type=Path, nargs="+", help="records of studies")
    parser.add_argument("--page", type=Path, required=True, help="a page with the marks of the table, to be renewed")
    return exit_status(partial(_draw, parser.parse_args(words)))


if __name__ == "__main__":
    sys.exit(main())
