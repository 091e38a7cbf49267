"""The report of a run or of an evaluation as one HTML page that needs no other file."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from pathlib import Path

from skillc_lab.report.records import RunRecords
from skillc_lab.report.shell import document, figure, raw
from skillc_lab.report.sources import Source
from skillc_lab.report.tables import cards, further, results, retirements
from skillc_lab.report.transcripts import transcripts_section

__all__ = ["render_page"]

_CAPTIONS = {
    "overview": "The run at a glance: success, active types, gap, gate and rollouts with the skill.",
    "before_after": "Held-out tasks before and after training, with 95 % intervals.",
    "outcome": "Held-out tasks with and without the skill, with 95 % intervals.",
    "success_by_type": "Each type on the held-back panel that steers the curriculum.",
    "diagnostics": "Whom the updates rewarded, and how long episodes were.",
}


def render_page(title: str, source: Source, figures: Mapping[str, Path], *, beside: str = "") -> str:
    """Renders the page; every recorded text is escaped, every figure inlined.

    Args:
        title: Its heading.
        source: What there is to report.
        figures: PNG files by name.
        beside: HTML of the part that shows other runs beside it, if any.
    """
    return document(
        title,
        [
            _lead(source),
            beside,
            _figure(figures, "overview"),
            *_held_out(source, figures),
            *_course(source.run, figures),
            *_transcripts(source),
            "<h2>Where this comes from</h2>" if source.config or source.versions else "",
            raw("Configuration", source.config),
            raw("Versions", source.versions),
        ],
    )


def _lead(source: Source) -> str:
    before, after = source.before.report, source.after.report
    steps = "" if source.run is None else f"{source.run.last_step} training steps; "
    if after is None:
        return f'<p class="soft">{steps or "No metrics; "}no evaluation before and after.</p>'
    tasks = f"{after.overall.n} held-out tasks, each played with the skill and without from the same seed."
    alone = " One training run: the intervals speak of the choice of tasks, not of other training seeds."
    return f'<p class="soft">{steps}{tasks}{alone * (source.run is not None)}</p>{cards(before, after)}'


def _held_out(source: Source, figures: Mapping[str, Path]) -> list[str]:
    if source.after.report is None:
        return []
    order = source.run.task_types if source.run else ()
    return [
        "<h2>Held-out tasks</h2>",
        results(source.before.report, source.after.report, order),
        further(source.after.report),
        _figure(figures, "before_after", narrow=True),
        _figure(figures, "outcome", narrow=True),
    ]


def _course(run: RunRecords | None, figures: Mapping[str, Path]) -> list[str]:
    if run is None:
        return []
    return [
        "<h2>Retirement</h2>",
        retirements(run.retirements),
        "<h2>Each task type</h2>",
        _figure(figures, "success_by_type"),
        "<h2>What the advantages did</h2>",
        _figure(figures, "diagnostics"),
    ]


def _transcripts(source: Source) -> list[str]:
    if source.after.episodes:
        how = "tasks that only the skill solved before training come first" if source.before.episodes else ""
        return [_examples("Transcripts", how), transcripts_section(source.before.episodes, source.after.episodes)]
    return [
        part
        for name, episodes in source.latest.items()
        for part in (_examples(name, ""), transcripts_section((), episodes))
    ]


def _examples(name: str, how: str) -> str:
    chosen = (
        f"Chosen to show most: {how or 'task types in turn'}, with a failure where there is one. They are no sample."
    )
    return (
        f'<h2>{escape(name)}</h2><p class="soft">The same task with the skill (left) and without (right). {chosen}</p>'
    )


def _figure(figures: Mapping[str, Path], name: str, *, narrow: bool = False) -> str:
    return figure(figures.get(name), _CAPTIONS[name], narrow=narrow)
