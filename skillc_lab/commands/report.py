"""``skillc report``: draw the pictures and the page of a run or an evaluation."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from skillc_lab.cli.command import Command, say
from skillc_lab.report import make_report


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


def report(options: ReportOptions) -> int:
    """Runs the command."""
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


COMMAND = Command(ReportOptions, report)
