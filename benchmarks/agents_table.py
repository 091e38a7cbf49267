"""What agents without training came to, from their evaluations: a record, and a table for the page of methods.

    skillc evaluate --agent react --out runs/agents/alfworld-react ...
    python -m benchmarks.agents_table runs/agents/* --out docs/results/agents.json --page docs/methods.md

Agents that try failed tasks again are counted with their last try.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.evaluations import evaluations_record
from benchmarks.page_block import write_block
from benchmarks.status import exit_status
from trainers.tracking import read_object, write_json

__all__ = ["agents_table", "main"]


def _described(folder: Path, config: Mapping[str, Any]) -> dict[str, Any]:
    agent, trials = (_read_if_there(folder / f"{name}.json") for name in ("agent", "trials"))
    kept = None if agent is None else {name: agent[name] for name in ("options", "figures")}
    return {"env": config["env"], "trials": trials, "agent": kept}


def _read_if_there(path: Path) -> dict[str, Any] | None:
    return read_object(path) if path.is_file() else None


def agents_table(record: Mapping[str, Any]) -> str:
    """Tasks solved with the skill and without, a row per environment and a column per agent, in Markdown."""
    evaluations = record["evaluations"]
    names = list(dict.fromkeys(each["report"]["agent"] for each in evaluations))
    heads = [_head(next(each for each in evaluations if each["report"]["agent"] == name)) for name in names]
    lines = [f"| solved with the skill / without | {' | '.join(heads)} |", "|---" * (1 + len(names)) + "|"]
    for env in dict.fromkeys(each["env"] for each in evaluations):
        own = {each["report"]["agent"]: each for each in evaluations if each["env"] == env}
        tasks = next(iter(own.values()))["report"]["overall"]["n"]
        cells = [_solved(own[name]) if name in own else "not run" for name in names]
        lines.append(f"| {tasks} tasks (`{env}`) | {' | '.join(cells)} |")
    return "\n".join(lines)


def _head(evaluation: Mapping[str, Any]) -> str:
    trials = evaluation["trials"]
    return f"{evaluation['report']['agent']}" + (f", {trials['trials']} tries" if trials else "")


def _solved(evaluation: Mapping[str, Any]) -> str:
    if evaluation["trials"]:
        return " / ".join(str(evaluation["trials"][arm][-1]["solved"]) for arm in ("with", "without"))
    overall = evaluation["report"]["overall"]
    return " / ".join(str(round(overall["n"] * overall[f"sr_{arm}"])) for arm in ("with", "without"))


def _write(options: argparse.Namespace) -> None:
    record = evaluations_record(options.folders, _described)
    write_block(options.page, "agents", agents_table(record))
    write_json(options.out, record)


def main(words: Sequence[str] | None = None) -> int:
    """Writes the record and the table; returns 2 where that was refused."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+", help="folders that skillc evaluate --agent --out wrote")
    parser.add_argument("--out", type=Path, required=True, help="the record")
    parser.add_argument("--page", type=Path, required=True, help="a page with the marks of the table, to be renewed")
    return exit_status(partial(_write, parser.parse_args(words)))


if __name__ == "__main__":
    sys.exit(main())
