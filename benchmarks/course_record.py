"""The record of a warm start, a training run and the evaluations before and after, from the folder they are in.

    scripts/smollm2/run.sh runs/smollm2
    python -m benchmarks.course_record runs/smollm2 --out docs/results/smollm2

writes the record, a page, and a picture of the run with both evaluations.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.status import exit_status
from skillc_gym.errors import MissingDataError
from skillc_lab.report import RunRecords, save_figures
from trainers.config import current_settings
from trainers.evaluation import Change, PairedReport, compare_reports
from trainers.tracking import one_revision, read_object, write_json
from trainers.warmstart import CARD

__all__ = ["course_record", "main"]

_ARMS = ("without", "with")
_PICTURES = ("overview", "before_after")
_OF_AN_UPDATE = (
    "step",
    "success_with",
    "success_without",
    "tokens_generated",
    "prompt_tokens",
    "loss",
    "grad_norm",
    "n_plus",
)


def course_record(folder: Path, *, allow_changes: bool = False) -> dict[str, Any]:
    """Reads a course.

    Args:
        folder: ``start`` (the warm-started policy), ``run``, and ``before`` and ``after`` (evaluations on one panel).
        allow_changes: Accept parts of several revisions, or with changes.

    Returns:
        The policy's card; both evaluations with the outcome of every task; how success changed, paired by task; the
        run's validations and seconds; revision and packages.

    Raises:
        ConfigError: The parts were made on several revisions, or the evaluations are of different panels.
        MissingDataError: A part is missing.
        CheckpointError: A part is not readable.
    """
    before, after = _evaluations(folder)
    run, card = RunRecords.read(folder / "run"), read_object(folder / "start" / CARD)
    versions = {part: read_object(folder / part / "versions.json") for part in ("before", "run", "after")}
    versions["start"] = card["versions"]
    return {
        "start": {name: card[name] for name in ("parameters", "loss_held_out", "demonstrator_success", "recipe")},
        "evaluations": {"before": before.to_json(), "after": after.to_json()},
        "change": {arm: _points(compare_reports(before, after, skill=arm == "with")["overall"]) for arm in _ARMS},
        "config": {name: value for name, value in run.config.items() if name not in ("model", "run")},
        "validations": list(run.validations),
        "updates": [_update(each) for each in run.train],
        "versions": versions["run"] | {"git": _one(versions.values(), allow_changes)},
    }


def _evaluations(folder: Path) -> tuple[PairedReport, PairedReport]:
    """Before and after."""
    paths = [folder / when / "report.json" for when in ("before", "after")]
    for path in paths:
        if not path.is_file():
            raise MissingDataError(f"{path} does not exist; the course has not come to its end")
    return PairedReport.load(paths[0]), PairedReport.load(paths[1])


def _one(versions: Iterable[Mapping[str, Any]], allow_changes: bool) -> dict[str, Any]:
    return one_revision([each["git"] for each in versions], allow_changes=allow_changes)


def _points(change: Change) -> dict[str, Any]:
    return {"points": 100 * change.change, "interval": [100 * end for end in change.interval.to_json()]}


def _update(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name in _OF_AN_UPDATE or name.startswith("seconds_")}


def _page(record: Mapping[str, Any], pictures: Sequence[str]) -> str:
    before, after = (record["evaluations"][when] for when in ("before", "after"))
    losses, games = record["start"]["loss_held_out"], after["overall"]["n"]
    updates = record["updates"]
    hours = sum(value for each in updates for name, value in each.items() if name.startswith("seconds_")) / 3600
    lines = [
        f"# {current_settings(record['config'])['method']} on a pretrained model",
        "",
        f"A start of {record['start']['parameters']:,} parameters (loss on the replies of held-out demonstrations: "
        f"{losses[0]:.2f} before, {losses[1]:.2f} after the warm start, in nats per token), {len(updates)} updates in "
        f"{hours:.1f} hours, and {games} held-out tasks in both conditions before and after. One seed; 95 % intervals "
        "over tasks.",
        "",
        "| | before | after | change |",
        "|---|---|---|---|",
    ]
    for arm in _ARMS:
        rates = [_rate(found["overall"], arm) for found in (before, after)]
        change = record["change"][arm]
        low, high = change["interval"]
        lines.append(f"| {arm} the skill | {' | '.join(rates)} | {change['points']:+.1f} [{low:+.1f}, {high:+.1f}] |")
    lines += ["", *(f"![{picture}]({picture})" for picture in pictures)]
    return "\n".join(lines) + "\n"


def _rate(found: Mapping[str, Any], arm: str) -> str:
    low, high = found[f"sr_{arm}_interval"]
    return f"{found[f'sr_{arm}']:.1%} [{100 * low:.0f}, {100 * high:.0f}]"


def _keep_pictures(folder: Path, out: Path) -> list[str]:
    before, after = _evaluations(folder)
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        drawn = save_figures(RunRecords.read(folder / "run"), Path(place), before=before, after=after)
        return [f"{out.name}/{Path(shutil.copy(drawn[name], out)).name}" for name in _PICTURES]


def _write(options: argparse.Namespace) -> None:
    record = course_record(options.folder, allow_changes=options.allow_changes)
    pictures = _keep_pictures(options.folder, options.out)
    write_json(options.out.with_suffix(".json"), record)
    options.out.with_suffix(".md").write_text(_page(record, pictures), encoding="utf-8")


def main(words: list[str] | None = None) -> int:
    """Writes the record; returns 2 where that was refused."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="start, run, before and after")
    parser.add_argument("--out", type=Path, required=True, help="place of record, page and pictures, without ending")
    parser.add_argument("--allow-changes", action="store_true", help="accept parts of several revisions")
    return exit_status(partial(_write, parser.parse_args(words)))


if __name__ == "__main__":
    sys.exit(main())
