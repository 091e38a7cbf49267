"""``skillc replay``: show recorded episodes, both conditions of a task side by side."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from skillc_gym.episodes import Episode, read_jsonl, to_atif
from skillc_gym.files import replace_file
from skillc_lab.cli.command import Command, say
from skillc_lab.report import read_object, replay_page, transcripts_of_step


@dataclass(frozen=True)
class ReplayOptions:
    """Write a page with recorded episodes, grouped by task, with the skill beside without it.

    With --atif they are written as trajectories of the Agent Trajectory Interchange Format instead.
    """

    run: Annotated[Path, tyro.conf.Positional]
    """Folder of a run or an evaluation, or a file of transcripts."""
    step: int | None = None
    """Step of a run; the last one that transcripts were kept of if none."""
    out: Path | None = None
    """The page; in RUN/report if none."""
    atif: Path | None = None
    """Folder that receives a trajectory in ATIF of each episode."""


def replay(options: ReplayOptions) -> int:
    """Runs the command."""
    if options.atif:
        say(f"{_write_atif(options, options.atif)} trajectories: {options.atif}")
        return 0
    say(str(replay_page(options.run, options.step, out=options.out)))
    return 0


def _write_atif(options: ReplayOptions, folder: Path) -> int:
    kept = read_object((options.run if options.run.is_dir() else options.run.parent) / "config.json")
    number = -1
    for number, episode in enumerate(_episodes(options)):
        name = f"{number:06d}-{'with' if episode.condition else 'without'}.json"
        replace_file(folder / name, [json.dumps(to_atif(episode, kept.get("model"))).encode()])
    return number + 1


def _episodes(options: ReplayOptions) -> list[Episode]:
    """The recorded episodes."""
    whole = options.run / "transcripts.jsonl" if options.run.is_dir() else options.run
    if whole.is_file():
        return list(read_jsonl(whole))
    return [episode for episodes in transcripts_of_step(options.run, options.step).values() for episode in episodes]


COMMAND = Command(ReplayOptions, replay)
