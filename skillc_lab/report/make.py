"""Reports from the files that a run or an evaluation left: figures with an HTML page, and pages of transcripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillc_gym.episodes import Episode, read_jsonl
from skillc_gym.errors import ConfigError, MissingDataError
from skillc_gym.files import replace_file
from skillc_lab.report.beside import beside_section, read_run, save_beside
from skillc_lab.report.figures import save_figures, save_outcome_figure
from skillc_lab.report.pages import render_page
from skillc_lab.report.shell import document
from skillc_lab.report.sources import Source, read_source, transcripts_of_step
from skillc_lab.report.transcripts import all_tasks, group_by_task

__all__ = ["ReportFiles", "make_report", "replay_page"]


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
    folder: str | Path,
    *,
    before: str | Path | None = None,
    after: str | Path | None = None,
    out: str | Path | None = None,
    title: str | None = None,
    beside: Sequence[str | Path] = (),
) -> ReportFiles:
    """Draws the figures of a run or of an evaluation and writes its page.

    Args:
        folder: Of a training run, finished or not, with or without its metrics, or of an evaluation.
        before: Folder of an evaluation before training (``report.json`` and, if there, ``transcripts.jsonl``); by
            default ``<folder>/before`` where it exists.
        after: The same after training; by default ``<folder>/after`` where it exists.
        out: Where to write; by default ``<folder>/report``.
        title: The page's heading.
        beside: Folders of other runs from the same start, to be shown beside it.

    Returns:
        The files' paths: ``index.html`` and the PNG figures.

    Raises:
        MissingDataError: There is nothing to report on, or a named evaluation is not there.
        MissingExtraError: matplotlib is not installed.
    """
    source = read_source(Path(folder), before=before, after=after)
    target = Path(folder) / "report" if out is None else Path(out)
    figures = _figures(source, target)
    section = ""
    if beside:
        runs = [read_run(Path(each)) for each in (folder, *beside)]
        figures["beside"] = save_beside(runs, target / "beside.png")
        section = beside_section(runs, figures["beside"])
    page = _write(target / "index.html", render_page(title or _title(source), source, figures, beside=section))
    return ReportFiles(page, figures)


def replay_page(path: str | Path, step: int | None = None, *, out: str | Path | None = None) -> Path:
    """Writes a page with every transcript of one step of a run, of an evaluation, or of a file of transcripts.

    Episodes are grouped by task, with the skill beside without it.

    Args:
        path: Folder of a run or of an evaluation, or a ``.jsonl`` file of episodes.
        step: Step of a run; the last one that transcripts were kept of by default.
        out: The page; by default in ``report/`` of the folder, or beside the file.

    Raises:
        MissingDataError: There are no transcripts.
        ConfigError: None were kept of this step, or a step is asked of what has none.
        TranscriptError: A line of the transcripts is no episode.
    """
    place = Path(path)
    sections, usual = _recorded(place, step)
    page = usual if out is None else Path(out)
    parts = [part for name, episodes in sections.items() for part in _section(name, episodes)]
    return _write(page, document(place.stem if place.is_file() else place.name or str(place), parts))


def _recorded(place: Path, step: int | None) -> tuple[Mapping[str, tuple[Episode, ...]], Path]:
    """Transcripts by title, and where their page lies by default."""
    flat = place if place.is_file() else place / "transcripts.jsonl"
    if (place / "transcripts").is_dir():
        found = transcripts_of_step(place, step)
        number = int(next(iter(found)).rsplit(" ", 1)[1])
        return found, place / "report" / f"replay-{number:06d}.html"
    if step is not None:
        raise ConfigError(f"{place} is no training run and has no steps; leave the step out")
    if not flat.is_file():
        raise MissingDataError(
            f"{place} holds no recorded episodes: expected transcripts/ of a training run, transcripts.jsonl of an "
            "evaluation, or a file of episodes"
        )
    usual = place.with_suffix(".html") if place.is_file() else place / "report" / "replay.html"
    return {"Episodes": tuple(read_jsonl(flat))}, usual


def _section(name: str, episodes: tuple[Episode, ...]) -> list[str]:
    tasks = len(group_by_task(episodes))
    solved = sum(bool(episode.won) for episode in episodes)
    count = f"{len(episodes)} episodes of {tasks} tasks, {solved} of them solved."
    return [f'<h2>{name}</h2><p class="soft">{count}</p>', all_tasks(episodes)]


def _figures(source: Source, target: Path) -> dict[str, Path]:
    before, after = source.before.report, source.after.report
    if source.run is not None:
        return save_figures(source.run, target, before=before, after=after)
    return save_outcome_figure(after, target, before=before) if after is not None else {}


def _write(page: Path, text: str) -> Path:
    # Half of a surrogate pair, which a model may write, cannot be stored as UTF-8.
    replace_file(page, [text.encode("utf-8", "replace")])
    return page


def _title(source: Source) -> str:
    config: Mapping[str, Any] = source.config
    what = (
        f"{config.get('method', 'a policy')} on {config.get('env', 'an environment')}, seed {config.get('seed', '?')}"
    )
    if source.run is not None:
        return what if "method" in config else "Training run"
    return f"Evaluation of {config.get('model', 'a policy')}" if source.after.report is not None else "Transcripts"
