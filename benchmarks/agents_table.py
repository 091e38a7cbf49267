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

from benchmarks.page_block import write_block
from benchmarks.status import exit_status
from skillc_gym.errors import MissingDataError
from trainers.tracking.json_files import read_object
from trainers.tracking.revision import one_revision
from trainers.tracking.run_folder import write_json

__all__ = ["agents_record", "agents_table", "main"]


def agents_record(folders: Sequence[Path]) -> dict[str, Any]:
    """Reads evaluations of one clean revision.

    Args:
        folders: As ``skillc evaluate --agent NAME --out`` wrote them.

    Raises:
        MissingDataError: A folder holds no evaluation.
        ConfigError: They are of several revisions, or of one with changes.
    """
    found = [_evaluation(folder) for folder in folders]
    revision = one_revision([each["versions"].get("git") for each in found])
    return {"revision": revision, "evaluations": found}


def _evaluation(folder: Path) -> dict[str, Any]:
    if not (folder / "report.json").is_file():
        raise MissingDataError(f"{folder} holds no evaluation (report.json); make one: skillc evaluate --out {folder}")
    report, config = (read_object(folder / f"{name}.json") for name in ("report", "config"))
    agent, trials = (
        read_object(folder / f"{name}.json") if (folder / f"{name}.json").is_file() else None
        for name in ("agent", "trials")
    )
    return {
        "env": config["env"],
        "report": report,
        "trials": trials,
        "agent": None if agent is None else {"options": agent["options"], "figures": agent["figures"]},
        "versions": read_object(folder / "versions.json"),
    }


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
    record = agents_record(options.folders)
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
