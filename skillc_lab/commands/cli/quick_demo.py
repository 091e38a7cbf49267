"""What ``skillc demo --quick`` says: both policies' rates, and one task's commands side by side."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby, zip_longest
from typing import TYPE_CHECKING

from skillc_lab.commands.quick_demo import QuickDemoResult

if TYPE_CHECKING:
    from skillc_gym.episodes import Episode
    from trainers.evaluation.paired_report import PairedReport

__all__ = ["describe_quick_demo", "side_by_side"]

_WIDTH = 78
_NO_TRAINED = (
    "No trained policy comes with this version: `skillc demo` trains one in some ten minutes, and\n"
    "`skillc demo --quick --policy runs/demo/policy` then shows it beside its start."
)


def describe_quick_demo(result: QuickDemoResult) -> str:
    """Puts the result into lines."""
    tasks = next(iter(result.reports.values())).overall.n
    parts = [
        f"\nOne held-out task of those that say most, each time from the same seed:\n\n{side_by_side(result.example)}",
        f"Success in per cent on {tasks} held-out tasks of {result.split} (95 % intervals):\n",
        f"  {'policy':<8}{'with the skill':>22}{'without':>22}{'gap':>22}",
        *(_row(name, report) for name, report in result.reports.items()),
        "" if "trained" in result.reports else f"\n{_NO_TRAINED}",
        f"\n{result.seconds:.0f} seconds. Page with every figure and transcripts: {result.page}",
    ]
    return "\n".join(part for part in parts if part)


def side_by_side(episodes: Mapping[str, Episode]) -> str:
    """A task's commands in columns, one for each episode; the same command again and again is written once."""
    width = _WIDTH // len(episodes)
    columns = [[title, "-" * len(title), *_commands(episode)] for title, episode in episodes.items()]
    rows = zip_longest(*columns, fillvalue="")
    lines = ("  " + "".join(_fit(cell, width) for cell in row).rstrip() for row in rows)
    return "\n".join([f"  Task: {next(iter(episodes.values())).goal}", "", *lines, ""])


def _commands(episode: Episode) -> list[str]:
    said = [(command, len(list(times))) for command, times in groupby(turn.action for turn in episode.turns)]
    lines = [command if times == 1 else f"{command} ({times} times)" for command, times in said]
    return [*lines, f"= {'solved' if episode.won else 'not solved'} in {len(episode)} steps"]


def _row(name: str, report: PairedReport) -> str:
    found = report.overall
    cells = (
        (found.sr_with, found.sr_with_interval),
        (found.sr_without, found.sr_without_interval),
        (found.gap, found.gap_interval),
    )
    shown = (f"{100 * rate:.0f} [{100 * found.low:.0f}, {100 * found.high:.0f}]".rjust(22) for rate, found in cells)
    return f"  {name:<8}{''.join(shown)}"


def _fit(text: str, width: int) -> str:
    plain = "".join(letter if letter.isprintable() else "?" for letter in text)
    return (plain if len(plain) < width else f"{plain[: width - 4]}...").ljust(width)
