"""Evaluations of policies as a record with a page: the outcome of every task, rates by split, step limit and type.

    skillc evaluate --model POLICY --split valid_unseen --out runs/a ...
    skillc evaluate --model POLICY --split valid_seen --out runs/b ...
    python -m benchmarks.evaluation_page runs/a runs/b --out docs/results/NAME

The page's tables stand between the marks ``<!-- tables:start -->`` and ``<!-- tables:end -->``; a page that is not
there is begun.
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
from skillc_gym.envs.registry import env_spec
from trainers.config import TrainConfig
from trainers.evaluation import PairedOutcome, PairedReport
from trainers.stats import wilson
from trainers.tracking import read_object, write_json
from trainers.warmstart import sha256_of_file

__all__ = ["evaluation_tables", "main"]

_SETTINGS = ("env", "split", "max_episode_steps", "max_reply_tokens", "max_context", "eval_temperature", "seed")
_LIMITS = (20, 30, 50)
"""Step limits that an evaluation tells of: an episode of at most so many steps would have ended the same."""


def _described(folder: Path, config: Mapping[str, Any]) -> dict[str, Any]:
    PairedReport.from_json(read_object(folder / "report.json"))
    weights = Path(TrainConfig(model=config["model"], env=config["env"]).model_path) / "model.safetensors"
    return {
        "policy": Path(config["model"]).name,
        "settings": {name: config[name] for name in _SETTINGS},
        "weights_sha256": sha256_of_file(weights) if weights.is_file() else None,
    }


def evaluation_tables(record: Mapping[str, Any]) -> str:
    """Two tables in Markdown: success by evaluation and step limit, and by task type."""
    evaluations = record["evaluations"]
    limits = [limit for limit in _LIMITS if limit <= max(each["settings"]["max_episode_steps"] for each in evaluations)]
    heads = [f"{arm}, {limit} steps" for arm in ("with", "without") for limit in limits]
    lines = [f"| policy | split | weights | tasks | {' | '.join(heads)} |", "|---" * (4 + len(heads)) + "|"]
    lines += [_limits_line(each, limits) for each in evaluations]
    kinds = list(env_spec(evaluations[0]["settings"]["env"]).task_types.values())
    lines += ["", f"| policy | with / without, by type | {' | '.join(kinds)} |", "|---" * (2 + len(kinds)) + "|"]
    return "\n".join([*lines, *(_types_line(each) for each in evaluations)])


def _limits_line(evaluation: Mapping[str, Any], limits: Sequence[int]) -> str:
    outcomes = PairedReport.from_json(evaluation["report"]).outcomes
    rates = [_within(outcomes, arm, limit) for arm in (True, False) for limit in limits]
    return f"| {_name(evaluation)} | {len(outcomes)} | {' | '.join(rates)} |"


def _within(outcomes: Sequence[PairedOutcome], skill: bool, limit: int) -> str:
    won = sum(outcome.arm(skill).won and outcome.arm(skill).steps <= limit for outcome in outcomes)
    interval = wilson(won, len(outcomes))
    return f"{100 * won / len(outcomes):.1f} [{100 * interval.low:.0f}, {100 * interval.high:.0f}]"


def _name(evaluation: Mapping[str, Any]) -> str:
    return f"{evaluation['policy']} | {evaluation['settings']['split']} | `{str(evaluation['weights_sha256'])[:12]}`"


def _types_line(evaluation: Mapping[str, Any]) -> str:
    counts = PairedReport.from_json(evaluation["report"]).per_type
    known = env_spec(evaluation["settings"]["env"]).task_types
    cells = [f"{100 * counts[k].sr_with:.0f} / {100 * counts[k].sr_without:.0f}" if k in counts else "" for k in known]
    return f"| {evaluation['policy']} | {evaluation['settings']['split']} | {' | '.join(cells)} |"


def _write(folders: Sequence[Path], out: Path) -> None:
    record, page = evaluations_record(folders, _described), out.with_suffix(".md")
    if not page.is_file():
        page.write_text(f"# {out.name}\n\n<!-- tables:start -->\n<!-- tables:end -->\n", encoding="utf-8")
    write_block(page, "tables", evaluation_tables(record))
    write_json(out.with_suffix(".json"), record)


def main(words: Sequence[str] | None = None) -> int:
    """Writes the record and its page; returns 2 where that was refused."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+", help="folders that skillc evaluate --out wrote")
    parser.add_argument("--out", type=Path, required=True, help="record and page, without ending")
    options = parser.parse_args(words)
    return exit_status(partial(_write, options.folders, options.out))


if __name__ == "__main__":
    sys.exit(main())
