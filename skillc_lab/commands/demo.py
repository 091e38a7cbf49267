"""``skillc demo``: evaluate a small policy, train it, evaluate it again, draw the report."""

from __future__ import annotations

import os
import sys
import webbrowser
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from skillc_lab.cli.command import Command, complain, say
from skillc_lab.commands.demonstration import DemoOptions, run_demo, run_demo_versus
from skillc_lab.commands.quick_demo import describe_quick_demo, run_quick_demo
from trainers.tracking import make_progress


def demo(options: DemoOptions) -> int:
    """Runs the command; 130 if it was interrupted."""
    if options.quick:
        result = run_quick_demo(options, progress=make_progress())
        say(describe_quick_demo(result, options.model))
        if options.open_page:
            open_page(Path(result["page"]))
        return 0
    alone = options.other is None
    summary = run_demo(options, progress=make_progress()) if alone else run_demo_versus(options, say=complain)
    if not summary["finished"]:
        complain(f"Interrupted after {summary['steps']} updates; the same command goes on from there.")
        return 130
    say(describe(summary))
    return 0


def open_page(path: Path) -> bool:
    """Opens a page in the user's browser from a terminal of a graphical session; tells whether one took it."""
    screen = sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return bool(sys.stdout.isatty() and screen and webbrowser.open(path.resolve().as_uri()))


def describe(summary: Mapping[str, Any]) -> str:
    """Puts the summary into a few lines."""
    lines = [
        f"\nSuccess on {summary['games']} held-out tasks (95 % intervals), before and after "
        f"{summary['steps']} updates of {summary['preset']}:",
        *_rates(summary),
        f"  Without skills: {_points(summary['change_without'])}.",
    ]
    if other := summary.get("beside"):
        found = summary["differences"]
        lines += [
            f"The same of {other['preset']}, from the same start on the same tasks:",
            *_rates(other),
            f"{summary['preset']} minus {other['preset']}, without skills: {_points(found['without'])};",
            f"  with skills: {_points(found['with'])}. One run each: other seeds may differ by more.",
        ]
    lines.append(f"  {summary['seconds']:.0f} seconds in all. Page with pictures and transcripts: {summary['page']}")
    return "\n".join(lines)


def _rates(summary: Mapping[str, Any]) -> Iterator[str]:
    for arm in ("with", "without"):
        shown = []
        for when in ("before", "after"):
            low, high = summary[f"sr_{arm}_{when}_interval"]
            rate = f"{100 * summary[f'sr_{arm}_{when}']:5.1f} % [{100 * low:.0f}, {100 * high:.0f}]"
            shown.append(rate.rjust(18))
        yield f"  {arm + ' skills':<15} {'  ->  '.join(shown)}"


def _points(change: Mapping[str, Any]) -> str:
    low, high = change["interval"]
    return f"{change['points']:+.1f} points, 95 % interval [{low:+.1f}, {high:+.1f}]"


COMMAND = Command(
    DemoOptions, demo, "interrupted; the same command goes on from what is finished (--quick plays again)."
)
