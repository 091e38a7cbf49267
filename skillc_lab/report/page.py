"""The report of a run or of an evaluation, and replays: HTML pages that need no other file."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from skillc_gym.envs.registry import env_spec
from skillc_gym.episodes import STYLE, Episode, read_jsonl, to_fragment
from skillc_gym.errors import ConfigError, MissingDataError, SkillCError, missing_extra
from skillc_gym.files import replace_file, require_own
from skillc_gym.pages import page as filled_in
from skillc_lab.report.examples import Fold, all_folds, examples, group_by_task
from skillc_lab.report.figures import save_figures, save_outcome_figure, save_versus
from skillc_lab.report.plots import said_of
from skillc_lab.report.records import ComparedRun, Source, read_run, read_source, transcripts_of_step
from skillc_lab.report.style import method_words
from skillc_lab.report.tables import (
    acted_table,
    agent_words,
    cards,
    cut_notes,
    lead,
    measures,
    results,
    retirements,
    shared_words,
    versus_table,
)
from trainers.evaluation import compare_reports, require_evaluation_of
from trainers.tracking import playing_settings, require_own_folder

_PAGE, _OPENING = "index.html", b"<!doctype html>"
_OURS = b"--ink:#1d2330"
"""A style that every report and replay has, and hardly anybody else's page."""


@dataclass(frozen=True)
class ReportFiles:
    """What :func:`make_report` wrote: the HTML page, and PNG files by name."""

    page: Path
    figures: dict[str, Path]


def make_report(
    folder: str | Path,
    *,
    before: str | Path | None = None,
    after: str | Path | None = None,
    out: str | Path | None = None,
    title: str | None = None,
    versus: Sequence[str | Path] = (),
) -> ReportFiles:
    """Draws the figures of a run or of an evaluation, finished or not, and writes its page, ``index.html``.

    Args:
        folder: Of a training run, with or without its metrics, or of an evaluation.
        before: Folder of an evaluation before training; by default ``<folder>/before`` where it exists.
        after: The same after training; by default ``<folder>/after`` where it exists.
        out: Where to write; by default ``<folder>/report``.
        title: The page's heading.
        versus: Folders of other runs from the same start, to be compared with it.

    Raises:
        MissingDataError: There is nothing to report on, or a named evaluation is not there.
        ConfigError: ``<folder>/report`` is a link, and no other place was named; or evaluations are of other tasks.
    """
    source = read_source(Path(folder), before=before, after=after)
    for rival in map(Path, versus):
        require_evaluation_of(rival / "policy", rival / "after")
    target = _own_folder(Path(folder)) if out is None else Path(out)
    first, second = source.before.report, source.after.report
    runs = []
    if source.run or versus:
        own, *others = (read_run(Path(each)) for each in (folder, *versus))
        runs = _distinct([replace(own, before=first, after=second), *others], [folder, *versus])
    reports = [each for each in (second, first, *(run.after for run in runs[1:])) if each is not None]
    for other in reports[1:]:
        compare_reports(other, reports[0], skill=False)  # refuses other tasks before anything is drawn
    if find_spec("matplotlib") is None:  # asked before a page is begun
        raise missing_extra("matplotlib", "report")
    _begin(target / _PAGE, own=out is None)
    if source.run is not None:
        figures = save_figures(source.run, target, before=first, after=second)
    else:
        figures = save_outcome_figure(second, target, before=first) if second is not None else {}
    if versus:
        figures["beside"] = save_versus(runs, target / "beside.png")
    page = _write(target / _PAGE, render_page(title or _title(source, runs), source, figures, runs))
    return ReportFiles(page, figures)


def _begin(page: Path, *, own: bool) -> None:
    """Marks a folder as a report's before anything is drawn, unless it holds somebody's page or pictures."""
    require_own(page, _OPENING, _OURS)
    if not own:
        require_own_folder(page.parent, (_PAGE,), ("*.png",), "--out")
    if not page.exists():
        _write(page, f"{_OPENING.decode()}<!-- begun {_OURS.decode()} -->")


def _distinct(runs: Sequence[ComparedRun], folders: Sequence[str | Path]) -> list[ComparedRun]:
    """The runs; those of one method are told apart by number and folder, as variants of it."""
    counts = Counter(each.name for each in runs)
    pairs = enumerate(zip(runs, folders, strict=True), 1)
    names = [f"{each.name}.{i}-{Path(folder).absolute().name}" for i, (each, folder) in pairs]
    return [replace(each, name=n) if counts[each.name] > 1 else each for each, n in zip(runs, names, strict=True)]


def render_page(title: str, source: Source, figures: Mapping[str, Path], runs: Sequence[ComparedRun]) -> str:
    """Renders the page; every recorded text is escaped, every figure inlined; the page's own run is the first."""
    run, before, after = source.run, source.before.report, source.after.report
    config = source.config if run else playing_settings(source.config)
    values: dict[str, Any] = {"config": config, "versions": source.versions}
    method = method_words(runs[0].name) if run and "method" in source.config else ""
    if after is not None:
        values["cards"], values["cuts"] = cards(before, after), list(cut_notes(after))
        values["lead"] = lead(method, before, after, runs[1:])
        values["results"] = results(before, after, run.task_types if run else ())
        values["further"], values["agent"] = measures(after), agent_words(after)
    elif before is not None:
        values["results"] = results(None, before)
    if run is not None:
        values["retirements"], values["said"] = retirements(run.retirements), said_of(run)
    values["versus"] = versus_table(runs) if len(runs) > 1 else None
    values["shared"] = shared_words(runs) if len(runs) > 1 else ""
    values["acted"] = acted_table(runs)
    values |= {"run": run, "method": method, "before": before, "after": after, "figures": figures}
    values["examples"] = _examples(source)
    return _render("report.html", title, values)


def _examples(source: Source) -> list[tuple[str, str, list[Fold]]]:
    if source.after.episodes:
        first = source.before.episodes
        how = "first come tasks that only the skill solved before training" if first else "task types in turn"
        return [("The same task, side by side", how, examples(first, source.after.episodes))]
    return [(name, "task types in turn", examples((), episodes)) for name, episodes in source.latest.items()]


def replay_page(path: str | Path, step: int | None = None, *, out: str | Path | None = None) -> Path:
    """Writes a page with every transcript of a step of a run, of an evaluation, or of a file, both conditions abreast.

    The step is the last that transcripts were kept of unless named; the page lies in ``report/``, or next to the file.

    Raises:
        MissingDataError: There are no transcripts.
        ConfigError: None were kept of this step, a step is asked of what has none, or ``report`` is a link.
    """
    place = Path(path)
    recorded, usual = recorded_episodes(place, step)
    sections = [(name, _count(episodes), all_folds(episodes)) for name, episodes in recorded.items()]
    title = place.stem if place.is_file() else place.name or str(place)
    if out is None and place.is_dir():
        _own_folder(place)
    return _write(usual if out is None else Path(out), _render("page.html", title, {"sections": sections}))


def recorded_episodes(place: Path, step: int | None = None) -> tuple[Mapping[str, tuple[Episode, ...]], Path]:
    """Transcripts by title, and where their page lies by default; errors as of :func:`replay_page`."""
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


def _own_folder(place: Path) -> Path:
    """Where reports of a folder go: in it. A run may be a stranger's, and a link in it may lead anywhere."""
    folder = place / "report"
    if folder.is_symlink():
        raise ConfigError(f"{folder} is a link, which is not followed; name the folder to write to with --out")
    return folder


def _count(episodes: Sequence[Episode]) -> str:
    solved = sum(bool(episode.won) for episode in episodes)
    return f"{len(episodes)} episodes of {len(group_by_task(episodes))} tasks, {solved} of them solved."


def _title(source: Source, runs: Sequence[ComparedRun]) -> str:
    config = source.config
    if source.run is None:
        return f"Evaluation of {config.get('model', 'a policy')}" if source.after.report else "Transcripts"
    if "method" not in config:
        return "Training run"
    methods = " beside ".join(method_words(each.name) for each in runs)
    return f"{methods[:1].upper()}{methods[1:]} in {_world(config)}"


def _world(config: Mapping[str, Any]) -> str:
    """An environment as its id spells it, without version, and whether its tasks were generated."""
    name = str(config.get("env", "an environment"))
    with suppress(SkillCError):
        # A run may be a stranger's: no module is imported because its configuration names one.
        name = env_spec(name.rpartition(":")[2]).id.rpartition("/")[2].partition("-v")[0]
    return f"{name}, generated tasks" if config.get("data") == "generated" else name


def _render(name: str, title: str, values: Mapping[str, Any]) -> str:
    used = {"episode_style": STYLE, "to_fragment": to_fragment, "inlined": _inlined, "pretty": _pretty}
    return filled_in("skillc_lab.report.templates", name, title=title, **used, **values)


def _inlined(picture: Path) -> str:
    return f"data:image/png;base64,{base64.b64encode(picture.read_bytes()).decode('ascii')}"


def _pretty(values: Mapping[str, Any]) -> str:
    return json.dumps(values, indent=1, ensure_ascii=False)


def _write(page: Path, text: str) -> Path:
    require_own(page, _OPENING, _OURS)
    replace_file(page, [text.encode("utf-8")])
    return page
