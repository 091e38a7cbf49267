"""What every method came to, from the records of studies, as a table of the page of methods.

python -m benchmarks.method_results docs/results/first_table.json docs/results/first_table_easy.json \
    --page docs/methods.md
python -m benchmarks.method_results docs/results/shop_methods.json --page docs/methods.md \
    --block shop-results --with-skill
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
from skillc_lab.studies import ComparisonRecord, MethodRow, Regime, read_record, regimes_of
from trainers.stats import Interval

__all__ = ["main", "results_table"]


def results_table(records: Sequence[ComparisonRecord], *, with_skill: bool = False) -> str:
    """Success without the skill after training and what may be said of it beside the baseline's, by starting point.

    Args:
        records: Of studies of one world, budget and baseline, the starting points all different.
        with_skill: Whether success with the skill gets a column, too.

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
    heads = [head for regime in regimes for head in _heads(regime, with_skill)]
    lines = [f"| method | {' | '.join(heads)} |", "|---" * (1 + len(heads)) + "|"]
    for method in methods:
        cells = [cell for regime in regimes for cell in _cells(regime.row(method), with_skill)]
        lines.append(f"| `{method}` | {' | '.join(cells)} |")
    return "\n".join([_sentence(records[0], regimes), "", *lines])


def _sentence(record: ComparisonRecord, regimes: Sequence[Regime]) -> str:
    tasks = len(regimes[0].cells[0].outcomes)
    most = max(cell.usage.tokens_generated for regime in regimes for cell in regime.cells)
    return (
        f"Success without the skill in per cent on {tasks} held-out tasks (`{regimes[0].env}`) after {record.budget:,} "
        f"generated tokens (a run ends with the update that crosses them: {most:,} at the most), and the difference "
        f"from the baseline, `{record.baseline}`, with a verdict after Holm's "
        f"step over the methods of a starting point. {_seeds(regimes)}"
    )


def _seeds(regimes: Sequence[Regime]) -> str:
    seeds = max(len(row.seeds) for regime in regimes for row in regime.rows)
    if seeds == 1:
        return "One seed: the differences' 95 % intervals are over tasks alone, and compare two runs, not two methods."
    return f"{seeds} seeds each, unless the verdict says one; 95 % intervals are over seeds and tasks."


def _heads(regime: Regime, with_skill: bool) -> list[str]:
    before = regime.before
    heads = [f"{regime.start} start" + ("" if before is None else f", {100 * before.without:.1f} before")]
    if with_skill:
        heads.append("with the skill" + ("" if before is None else f", {100 * before.with_skill:.1f} before"))
    return [*heads, "beside the baseline"]


def _cells(row: MethodRow | None, with_skill: bool) -> list[str]:
    if row is None:
        return ["not run", *([""] if with_skill else []), ""]
    shown = [row.without, row.with_skill] if with_skill else [row.without]
    return [*(f"{100 * found.mean:.1f}{_within(found.interval, least=0.0)}" for found in shown), _beside(row)]


def _beside(row: MethodRow) -> str:
    if row.against is None:
        return "(baseline)"
    found = row.against.difference
    return f"{100 * found.mean:+.1f}{_within(found.interval)}: {row.against.verdict}"


def _within(interval: Interval | None, least: float = -1.0) -> str:
    """Cut where no rate, or no difference of rates, can lie."""
    return "" if interval is None else f" [{100 * max(interval.low, least):.0f}, {100 * min(interval.high, 1.0):.0f}]"


def _draw(options: argparse.Namespace) -> None:
    records = [read_record(path) for path in options.records]
    write_block(options.page, options.block, results_table(records, with_skill=options.with_skill))


def main(words: list[str] | None = None) -> int:
    """Writes the table into the page; returns 2 where that was refused."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", type=Path, nargs="+", help="records of studies")
    parser.add_argument("--page", type=Path, required=True, help="a page with the marks of the table, to be renewed")
    parser.add_argument("--block", default="results", help="name in the marks")
    parser.add_argument("--with-skill", action="store_true", help="success with the skill, too")
    return exit_status(partial(_draw, parser.parse_args(words)))


if __name__ == "__main__":
    sys.exit(main())
