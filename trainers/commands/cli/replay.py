"""``skillc replay``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from trainers.commands.cli.command import Command
from trainers.commands.cli.console import say
from trainers.report.make import replay_page

__all__ = ["COMMAND", "ReplayOptions"]


@dataclass(frozen=True)
class ReplayOptions:
    """Write a page with recorded episodes, grouped by task, with the skill beside without it."""

    run: Annotated[Path, tyro.conf.Positional]
    """Folder of a run or an evaluation, or a file of transcripts."""
    step: int | None = None
    """Step of a run; the last one that transcripts were kept of if none."""
    out: Path | None = None
    """The page; in RUN/report if none."""


def replay(options: ReplayOptions) -> int:
    """Runs the command."""
    say(str(replay_page(options.run, options.step, out=options.out)))
    return 0


COMMAND = Command(ReplayOptions, replay)
