"""The record of one demonstration, read from its folder: settings, figures, the outcome of every task."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from skillc_gym.errors import ConfigError
from skillc_lab.commands.demo import DemoConfig
from skillc_lab.report import RunRecords
from trainers.evaluation import PairedReport, compare_reports, graded, mean_scores
from trainers.warmstart import CARD

__all__ = ["VALIDATED", "differences", "one_panel", "panels", "record"]

VALIDATED = ("step", "overall_with", "overall_without", "sr_with", "sr_without", "gap_smoothed", "active", "n")
"""What is kept of every validation."""

_TIMES = ("before", "after")
_ARMS = ("with", "without")


def record(config: DemoConfig) -> dict[str, Any]:
    """The record of a finished demonstration.

    ``outcomes`` holds, per split, time and condition, one character for each task of the panel, in its order: 1 where
    it was solved; ``scores`` the raw scores, where the environment gives more than yes or no.
    """
    run = config.out
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    records = RunRecords.read(run)
    reports = {split: {when: _report(config, when, split) for when in _TIMES} for split in config.splits}
    left_out = ("page", "pictures", "transcripts")
    return {
        **{key: value for key, value in summary.items() if key not in left_out},
        "data": summary["data"] if summary["data"] == "generated" else "real",
        "config": {key: value for key, value in records.config.items() if key not in ("model", "run", "data")},
        "policy": _policy(Path(config.training().model_path)),
        "git": json.loads((run / "versions.json").read_text(encoding="utf-8"))["git"],
        "panel_sha256_of_training": _training_panel(run),
        "retired": [
            {"type": kind, "step": step, "reason": reason} for kind, (step, reason) in records.retirements.items()
        ],
        "validations": [{key: found[key] for key in VALIDATED} for found in records.validations],
        "outcomes": {split: {when: _won(found[when]) for when in _TIMES} for split, found in reports.items()},
        "scores": {split: _scores(found) for split, found in reports.items()},
        "cut_by_context": {
            split: {when: found[when].cuts("context") for when in _TIMES} for split, found in reports.items()
        },
        "seconds_of": {
            key.removeprefix("seconds_"): round(sum(found[key] for found in records.train), 1)
            for key in sorted(records.train[0])
            if key.startswith("seconds_")
        },
    }


def panels(config: DemoConfig) -> dict[str, Any]:
    """The held-out tasks of every split in the order of the outcomes, and what identifies them."""
    found = {split: _report(config, "before", split) for split in config.splits}
    return {
        split: {"sha256": report.panel_sha256, "identity": dict(report.identity), "tasks": list(report.tasks)}
        for split, report in found.items()
    }


def one_panel(records: Sequence[Mapping[str, Any]]) -> None:
    """Checks that all runs were trained beside one panel and evaluated on one.

    Raises:
        ConfigError: They were not.
    """
    hashes = {"the curriculum's panel": {found["panel_sha256_of_training"] for found in records}}
    for split in records[0]["splits"]:
        hashes[f"the panel of {split}"] = {found["splits"][split]["panel_sha256"] for found in records}
    for name, found in hashes.items():
        if len(found) > 1:
            raise ConfigError(
                f"The runs have {len(found)} versions of {name} ({', '.join(sorted(h[:12] for h in found))}); "
                "a record is of one panel. Delete the runs made before the others, and run them again"
            )


def differences(configs: Sequence[DemoConfig]) -> list[dict[str, Any]]:
    """How the first method's success without skills differs from each other method's after training, seed by seed.

    Paired by task, in points, with Newcombe's 95 % interval, on the headline split.
    """
    first = configs[0].preset
    by_run = {(config.preset, config.seed): config for config in configs}
    return [
        {
            "first": first,
            "second": config.preset,
            "seed": config.seed,
            **_difference(by_run[first, config.seed], config),
        }
        for config in configs
        if config.preset != first
    ]


def _difference(one: DemoConfig, other: DemoConfig) -> dict[str, Any]:
    split = one.splits[0]
    found = compare_reports(_report(other, "after", split), _report(one, "after", split), skill=False)["overall"]
    return {"points": 100 * found.change, "interval": [100 * end for end in found.interval.to_json()]}


def _report(config: DemoConfig, when: str, split: str) -> PairedReport:
    return PairedReport.load(config.evaluation(when, split) / "report.json")


def _won(report: PairedReport) -> dict[str, str]:
    return {arm: "".join(str(int(outcome.arm(arm == "with").won)) for outcome in report.outcomes) for arm in _ARMS}


def _scores(reports: Mapping[str, PairedReport]) -> dict[str, Any] | None:
    """Mean scores and the score of every task; None where a score says no more than success."""
    if not any(graded(report.outcomes) for report in reports.values()):
        return None
    return {
        when: {
            "mean": mean_scores(report.outcomes),
            **{arm: [round(o.arm(arm == "with").score, 6) for o in report.outcomes] for arm in _ARMS},
        }
        for when, report in reports.items()
    }


def _training_panel(run: Path) -> str:
    tasks = json.loads((run / "tasks.json").read_text(encoding="utf-8"))["panel"]
    return hashlib.sha256("\n".join(tasks).encode()).hexdigest()


def _policy(folder: Path) -> dict[str, Any]:
    """What the card of a warm-started policy says of it; empty for another model."""
    card = folder / CARD
    if not card.exists():
        return {}
    found = json.loads(card.read_text(encoding="utf-8"))
    games = found["recipe"]["demonstrations"]["env_kwargs"]
    games["data"] = games["data"] if games["data"] == "generated" else "real"
    return {key: found[key] for key in ("parameters", "weights_sha256", "demonstrator_success", "recipe")}
