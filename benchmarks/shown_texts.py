"""What policies do with texts that should not help, before and after training: one table from a study's replays.

    skillc study RUN-FILE --library alfworld:wrong
    python -m benchmarks.shown_texts STUDY.json STUDY_alfworld.wrong.json ... --out docs/results/NAME

The first record is the study's own, with the skill; the others are the same policies, shown another library.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.page_record import measure_and_write, record_names
from benchmarks.rates import points, rate
from skillc_gym.errors import ConfigError
from skillc_lab.studies import CellResult, ComparisonRecord, change, read_record, success
from trainers.stats import wilson

__all__ = ["main", "shown_library"]


def shown_library(record: ComparisonRecord) -> str:
    """What skill-injected episodes of a record were shown; the environment's own library is "the skill"."""
    return str(record.protocol["settings"].get("library") or "the skill")


def _measure(options: argparse.Namespace) -> dict[str, Any]:
    records = [read_record(path) for path in options.records]
    panels = {cell.panel_sha256 for record in records for cell in record.results}
    if len(panels) > 1:
        raise ConfigError(f"Texts are compared on the same tasks; these records have {len(panels)} panels")
    return {
        "records": record_names(options.records),
        "tasks": len(records[0].results[0].outcomes),
        "starts": {start: _texts(records, start, options.methods) for start in records[0].starts},
    }


def _texts(records: Sequence[ComparisonRecord], start: str, methods: Sequence[str]) -> list[dict[str, Any]]:
    found = []
    for record in records:
        before = record.untrained(start)
        if before is None:
            raise ConfigError(f"{record.title} has no cell of the starting point {start!r}; the same command plays it")
        shown = {
            method: [cell for cell in record.results if (cell.start, cell.method) == (start, method)]
            for method in methods
        }
        found.append({"shown": shown_library(record), **_rates(before, shown)})
    return found


def _rates(before: CellResult, shown: Mapping[str, Sequence[CellResult]]) -> dict[str, Any]:
    won = sum(outcome.won_with for outcome in before.outcomes)
    return {
        "before": {"mean": before.with_skill, "interval": wilson(won, len(before.outcomes)).to_json()},
        "before_without": before.without,
        "after": {method: _after(cells, before) for method, cells in shown.items() if cells},
    }


def _after(cells: Sequence[CellResult], before: CellResult) -> dict[str, Any]:
    with_text, without = success(cells, skill=True), success(cells, skill=False)
    gained = change(cells, before, skill=True)
    return {
        "seeds": sorted(cell.seed for cell in cells),
        "mean": with_text.mean,
        "interval": with_text.interval and with_text.interval.to_json(),
        "without": without.mean,
        "change": gained.to_json(),
    }


def _page(record: Mapping[str, Any]) -> str:
    lines = [
        "# Texts that should not help, before and after training",
        "",
        f"`python -m benchmarks.shown_texts {' '.join(record['records'])}`: success in per cent on {record['tasks']} "
        "held-out tasks, 95 %: over tasks before training, over seeds and tasks after.",
        "The change is that of the same tasks, in points.",
    ]
    for start, texts in record["starts"].items():
        lines += ["", f"## {start}", "", *_table(texts)]
    return "\n".join(lines) + "\n"


def _table(texts: Sequence[Mapping[str, Any]]) -> list[str]:
    methods = list(dict.fromkeys(method for each in texts for method in each["after"]))
    heads = [f"after {method} | change" for method in methods]
    first = texts[0]
    nothing = [f"{100 * first['after'][method]['without']:.1f} |" for method in methods]
    return [
        f"| shown | before | {' | '.join(heads)} |",
        "|---" * (2 + 2 * len(methods)) + "|",
        f"| nothing | {100 * first['before_without']:.1f} | {' | '.join(nothing)} |",
        *(f"| {each['shown']} | {rate(each['before'])} | {' | '.join(_cells(each, methods))} |" for each in texts),
    ]


def _cells(each: Mapping[str, Any], methods: Sequence[str]) -> list[str]:
    found = [each["after"].get(method) for method in methods]
    return [f"{rate(after)} | {points(after['change'], 0)}" if after else " | " for after in found]


def main(words: Sequence[str] | None = None) -> int:
    """Writes the table; 2 where a record is missing or of other tasks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", type=Path, nargs="+", help="a study's record, then those of its replays")
    parser.add_argument("--methods", nargs="+", default=["contrastive_relabelling", "grpo"], help="whose policies")
    parser.add_argument("--out", type=Path, help="record and page, without ending")
    return 2 if measure_and_write(parser.parse_args(words), _measure, _page) is None else 0


if __name__ == "__main__":
    raise SystemExit(main())
