"""``skillc report``: draw the pictures and the page of a run or an evaluation.

``skillc replay``: show recorded episodes, both conditions of a task side by side.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from skillc_gym.envs.registry import env_spec
from skillc_gym.episodes import Episode, to_atif
from skillc_gym.errors import ConfigError
from skillc_gym.files import replace_file
from skillc_lab.cli.command import Command, refuse_options, require_empty, say
from skillc_lab.report import make_report, object_or_empty, recorded_episodes, replay_page

_SHOP = "webshop"


@dataclass(frozen=True)
class ReportOptions:
    """Draw the pictures and write the page of a training run or of an evaluation, finished or not."""

    run: Annotated[Path, tyro.conf.Positional]
    """Folder of the run or the evaluation."""
    before: Path | None = None
    """Evaluation before training to show beside it; RUN/before if that exists."""
    after: Path | None = None
    """Evaluation after training; RUN/after if that exists."""
    out: Path | None = None
    """Where to write; RUN/report if none."""
    title: str | None = None
    """Heading of the page."""
    versus: tuple[Path, ...] = ()
    """Folders of other runs from the same start, to be compared with it."""


def _report(options: ReportOptions) -> int:
    if options.run.resolve() in (place.resolve() for place in options.versus):
        raise ConfigError(f"--versus names {options.run} itself; name other runs, or leave it out")
    files = make_report(
        options.run,
        before=options.before,
        after=options.after,
        out=options.out,
        title=options.title,
        versus=options.versus,
    )
    say("\n".join(str(path) for path in (*files.figures.values(), files.page)))
    return 0


# Recorded episodes ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ReplayOptions:
    """Write a page with recorded episodes, grouped by task, with the skill beside without it.

    With --site, WebShop's episodes are shown in the shop itself, step by step, instead. With --atif they are written
    as trajectories of the Agent Trajectory Interchange Format.
    """

    run: Annotated[Path, tyro.conf.Positional]
    """Folder of a run or an evaluation, or a file of transcripts."""
    step: int | None = None
    """Step of a run; the last one that transcripts were kept of if none."""
    out: Path | None = None
    """The page; in RUN/report if none."""
    atif: Path | None = None
    """Folder that receives a trajectory in ATIF of each episode."""
    site: bool = False
    """Serve the shop's own pages of the episodes, until Ctrl-C."""
    port: int = 3000
    """Port of the site; 0 for any that is free."""
    data: str | None = None
    """The shop's data, with --site; the run's own if none."""


def _replay(options: ReplayOptions) -> int:
    if options.atif:
        if options.out or options.site:
            raise ConfigError("--atif writes trajectories alone; leave out --out and --site, or --atif")
        refuse_options(options, ("data", "port"), "--atif")
        say(f"{_write_atif(options, options.atif)} trajectories: {options.atif}")
        return 0
    if options.site:
        refuse_options(options, ("out",), "--site")
        from skillc_lab.commands.shop import serve_site

        return serve_site(_shop(options), port=options.port, episodes=_episodes(options))
    refuse_options(options, ("data", "port"), "A page", ", or serve the shop by --site")
    say(str(replay_page(options.run, options.step, out=options.out)))
    return 0


def _write_atif(options: ReplayOptions, folder: Path) -> int:
    require_empty(folder)
    kept, episodes = _config(options), _episodes(options)
    for number, episode in enumerate(episodes):
        name = f"{number:06d}-{'with' if episode.condition else 'without'}.json"
        replace_file(folder / name, [json.dumps(to_atif(episode, kept.get("model"))).encode()])
    return len(episodes)


def _episodes(options: ReplayOptions) -> list[Episode]:
    recorded, _ = recorded_episodes(options.run, options.step)
    return [episode for episodes in recorded.values() for episode in episodes]


def _config(options: ReplayOptions) -> dict[str, Any]:
    return object_or_empty((options.run if options.run.is_dir() else options.run.parent) / "config.json")


def _shop(options: ReplayOptions) -> dict[str, Any]:
    """The arguments that the episodes' shop was made with; the split does not matter, since tasks are named."""
    kept = _config(options)
    played, shop = env_spec(str(kept.get("env", _SHOP)).rpartition(":")[2]), env_spec(_SHOP)
    if played.task_types and played.task_types != shop.task_types:
        raise ConfigError(f"{options.run} was played in {played.name}, not in the shop; leave out --site for a page")
    data = options.data or kept.get("data")
    if data is None:
        raise ConfigError(f"{options.run} does not say which shop its episodes were played in; name it with --data.")
    return {"data": data, **kept.get("env_options", {})}


COMMANDS = {"report": Command(ReportOptions, _report), "replay": Command(ReplayOptions, _replay)}
