"""A run's report: figures and one HTML page, from the files that the run left."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillc_gym.episodes import Episode, read_jsonl
from skillc_gym.errors import MissingDataError
from trainers.evaluation.paired_report import PairedReport
from trainers.report.figures import save_figures
from trainers.report.pages import PageContent, render_page
from trainers.report.records import RunRecords

__all__ = ["ReportFiles", "make_report"]


@dataclass(frozen=True)
class ReportFiles:
    """What :func:`make_report` wrote.

    Attributes:
        page: The HTML page.
        figures: PNG files by name.
    """

    page: Path
    figures: dict[str, Path]


def make_report(
    run: str | Path,
    *,
    before: str | Path | None = None,
    after: str | Path | None = None,
    out: str | Path | None = None,
    title: str | None = None,
) -> ReportFiles:
    """Draws a run's figures and writes its page.

    Args:
        run: Folder of a training run, finished or not.
        before: Folder of an evaluation before training (``report.json`` and, if there, ``transcripts.jsonl``); by
            default ``<run>/before`` where it exists.
        after: The same after training; by default ``<run>/after`` where it exists.
        out: Where to write; by default ``<run>/report``.
        title: The page's heading.

    Returns:
        The files' paths: ``index.html`` and the PNG figures.

    Raises:
        MissingDataError: The run's metrics, or a named evaluation, are not there.
        MissingExtraError: matplotlib is not installed.
    """
    folder = Path(run)
    records = RunRecords.read(folder)
    target = folder / "report" if out is None else Path(out)
    first, first_episodes = _evaluation(folder / "before", before)
    second, second_episodes = _evaluation(folder / "after", after)
    figures = save_figures(records, target, before=first, after=second)
    content = PageContent(
        title=title or _title(records),
        run=records,
        figures=figures,
        before=first,
        after=second,
        episodes_before=first_episodes,
        episodes_after=second_episodes,
        versions=_json(folder / "versions.json"),
    )
    page = target / "index.html"
    page.write_text(render_page(content), encoding="utf-8")
    return ReportFiles(page, figures)


def _evaluation(usual: Path, named: str | Path | None) -> tuple[PairedReport | None, list[Episode]]:
    folder = usual if named is None else Path(named)
    if not (folder / "report.json").is_file():
        if named is None:
            return None, []
        raise MissingDataError(f"{folder / 'report.json'} does not exist; evaluate the policy into {folder} first")
    transcripts = folder / "transcripts.jsonl"
    return PairedReport.load(folder / "report.json"), read_jsonl(transcripts) if transcripts.is_file() else []


def _title(records: RunRecords) -> str:
    config = records.config
    if "preset" not in config:
        return "Training run"
    return f"{config['preset']} on {config.get('env', 'an environment')}, seed {config.get('seed', '?')}"


def _json(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else {}
