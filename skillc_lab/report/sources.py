"""What lies in a folder to report on: a run's metrics, evaluations, transcripts; each may be missing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skillc_gym.episodes import Episode, read_jsonl
from skillc_gym.errors import ConfigError, MissingDataError
from skillc_lab.report.records import RunRecords, read_object
from trainers.config import current_settings
from trainers.evaluation.paired_report import PairedReport

__all__ = ["Evaluation", "Source", "read_evaluation", "read_source", "transcripts_of_step"]


@dataclass(frozen=True)
class Evaluation:
    """What an evaluation left.

    Attributes:
        report: Its outcomes, None where there are only transcripts.
        episodes: Its transcripts, if they were kept.
    """

    report: PairedReport | None = None
    episodes: tuple[Episode, ...] = ()


@dataclass(frozen=True)
class Source:
    """What a folder holds.

    Attributes:
        run: A run's metrics, None for an evaluation or a run that left none.
        before: The evaluation before training.
        after: The evaluation after it; for the folder of an evaluation, that evaluation.
        latest: Transcripts of the last step that a run kept any of, by title.
        config: ``config.json``.
        versions: ``versions.json``.
    """

    run: RunRecords | None
    before: Evaluation
    after: Evaluation
    latest: Mapping[str, tuple[Episode, ...]] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, Any] = field(default_factory=dict)


def read_source(folder: Path, *, before: str | Path | None = None, after: str | Path | None = None) -> Source:
    """Reads a folder.

    Args:
        folder: Of a run or of an evaluation.
        before: Folder of the evaluation before training; by default ``<folder>/before``.
        after: The same after training; by default ``<folder>/after``, or the folder itself if it is an evaluation's.

    Raises:
        MissingDataError: There is nothing to report on, or a named evaluation is not there.
    """
    run = RunRecords.read(folder) if (folder / "metrics.jsonl").is_file() else None
    first = read_evaluation(folder / "before" if before is None else Path(before), required=before is not None)
    second = read_evaluation(folder / "after" if after is None else Path(after), required=after is not None)
    if after is None and second == Evaluation():
        second = read_evaluation(folder)
    latest = transcripts_of_step(folder) if any((folder / "transcripts").glob("*.jsonl")) else {}
    if run is None and not latest and Evaluation() == first == second:
        raise MissingDataError(
            f"{folder} holds nothing to report on: expected metrics.jsonl or transcripts/ of a training run, or "
            "report.json or transcripts.jsonl of an evaluation"
        )
    return Source(
        run,
        first,
        second,
        latest,
        current_settings(read_object(folder / "config.json")),
        read_object(folder / "versions.json"),
    )


def read_evaluation(folder: Path, *, required: bool = False) -> Evaluation:
    """Reads what an evaluation left in a folder; nothing of it need be there.

    Raises:
        MissingDataError: It is required and there is no ``report.json``.
    """
    report, transcripts = folder / "report.json", folder / "transcripts.jsonl"
    if required and not report.is_file():
        raise MissingDataError(f"{report} does not exist; evaluate the policy into {folder} first")
    return Evaluation(
        PairedReport.load(report) if report.is_file() else None,
        tuple(read_jsonl(transcripts)) if transcripts.is_file() else (),
    )


def transcripts_of_step(folder: Path, step: int | None = None) -> dict[str, tuple[Episode, ...]]:
    """The transcripts that a run kept of a step, by title ("Validation at step 10", "Training rollouts of step 10").

    Args:
        folder: The run's folder.
        step: The step; the last one that any were kept of by default.

    Raises:
        MissingDataError: The run kept no transcripts.
        ConfigError: It kept none of this step; the message names the steps.
    """
    kept: dict[int, list[Path]] = {}
    for path in sorted((folder / "transcripts").glob("*.jsonl")):
        if found := re.fullmatch(r"(?:train|validation)-(\d{1,12})", path.stem):
            kept.setdefault(int(found[1]), []).append(path)
    if not kept:
        raise MissingDataError(
            f"{folder / 'transcripts'} holds no transcripts of a run (train-*.jsonl, validation-*.jsonl)"
        )
    wanted = max(kept) if step is None else step
    if wanted not in kept:
        raise ConfigError(f"{folder} kept no transcripts of step {wanted}; there are some of {_listed(sorted(kept))}")
    names = {"train": "Training rollouts of step", "validation": "Validation at step"}
    return {f"{names[path.stem.split('-')[0]]} {wanted}": tuple(read_jsonl(path)) for path in reversed(kept[wanted])}


def _listed(steps: list[int]) -> str:
    shown = [str(step) for step in steps]
    return ", ".join(shown) if len(shown) <= 12 else f"{', '.join(shown[:5])}, ... {', '.join(shown[-5:])}"
