"""``skillc demo``: evaluate a small policy, train it, evaluate it again, draw the report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skillc_lab.cli.command import Command, complain, say
from skillc_lab.commands.demonstration import DemoOptions, run_demo, run_demo_versus
from skillc_lab.commands.quick_demo import describe_quick_demo, run_quick_demo
from skillc_lab.tables import Table, rate
from trainers.tracking import make_progress


def demo(options: DemoOptions) -> int:
    """Runs the command; 130 if it was interrupted."""
    if options.quick:
        say(describe_quick_demo(run_quick_demo(options, progress=make_progress()), options.model))
        return 0
    alone = options.other is None
    summary = run_demo(options, progress=make_progress()) if alone else run_demo_versus(options, say=complain)
    if not summary["finished"]:
        complain(f"Interrupted after {summary['steps']} updates; the same command goes on from there.")
        return 130
    say(describe(summary))
    return 0


def describe(summary: Mapping[str, Any]) -> str:
    """Puts the summary into a few lines."""
    lines = [
        f"\nSuccess in per cent on {summary['games']} held-out tasks (95 % intervals), before and after "
        f"{summary['steps']} updates of {summary['preset']}:",
        _rates(summary),
        f"  Without skills: {_points(summary['change_without'])}.",
    ]
    if other := summary.get("beside"):
        found = summary["differences"]
        lines += [
            f"The same of {other['preset']}, from the same start on the same tasks:",
            _rates(other),
            f"{summary['preset']} minus {other['preset']}, without skills: {_points(found['without'])};",
            f"  with skills: {_points(found['with'])}. One run each: other seeds may differ by more.",
        ]
    lines.append(f"  {summary['seconds']:.0f} seconds in all. Page with pictures and transcripts: {summary['page']}")
    return "\n".join(lines)


def _rates(summary: Mapping[str, Any]) -> str:
    """Success with skills and without, before and after."""
    rows = [
        [f"{arm} skills", *(_rate(summary, arm, when) for when in ("before", "after"))] for arm in ("with", "without")
    ]
    return Table(["", "before", "after"], rows, numbers=(1, 2)).text()


def _rate(summary: Mapping[str, Any], arm: str, when: str) -> str:
    return rate(summary[f"sr_{arm}_{when}"], summary[f"sr_{arm}_{when}_interval"])


def _points(change: Mapping[str, Any]) -> str:
    low, high = change["interval"]
    return f"{change['points']:+.1f} points, 95 % interval [{low:+.1f}, {high:+.1f}]"


COMMAND = Command(
    DemoOptions, demo, "interrupted; the same command goes on from what is finished (--quick plays again)."
)
