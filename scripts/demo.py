"""The demonstration: ``make demo``, or ``python -m scripts.demo --out runs/demo``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from skillc_gym.envs.registry import warm_started, warm_started_names
from skillc_gym.errors import SkillCError
from trainers.commands.demo import DemoConfig, run_demo
from trainers.tracking.progress import make_progress


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument(
        "--out", type=Path, default=Path("runs/demo"), help="run folder; an interrupted run goes on there"
    )
    parser.add_argument("--env", default="alfworld", choices=warm_started_names(), help="the environment")
    parser.add_argument(
        "--data",
        help="'generated', or the environment's folder or archive (default: ALFWORLD_DATA when that is set and the "
        "environment is alfworld, else generated)",
    )
    parser.add_argument(
        "--policy", type=Path, help="warm-started policy; default: the shipped one, or for --data one made first"
    )
    parser.add_argument("--preset", default="skillc", help="the method")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=DemoConfig.steps, help="updates")
    parser.add_argument(
        "--held-out", type=int, help="held-out tasks per task type, 0 for all (default: 40 games a type, 240 goals)"
    )
    parser.add_argument(
        "--held-out-splits",
        nargs="+",
        default=[],
        help="splits of the held-out tasks, the headline first (default: valid_unseen; test in the shop)",
    )
    args = parser.parse_args(argv)
    variable = warm_started(args.env)[1].demo.data_variable
    args.data = args.data or (os.environ.get(variable) if variable else None) or "generated"
    return args


def describe(summary: Mapping[str, Any]) -> str:
    """Puts the summary into a few lines."""
    rows = []
    for arm in ("with", "without"):
        cells = []
        for when in ("before", "after"):
            low, high = summary[f"sr_{arm}_{when}_interval"]
            cells.append(f"{100 * summary[f'sr_{arm}_{when}']:5.1f} % [{100 * low:.0f}, {100 * high:.0f}]")
        rows.append(f"  {arm + ' skills':<15} {cells[0]:>18}  ->  {cells[1]}")
    change = summary["change_without"]
    low, high = change["interval"]
    return "\n".join(
        [
            f"\nSuccess on {summary['games']} held-out tasks (95 % intervals), before and after "
            f"{summary['steps']} updates:",
            *rows,
            f"  Without skills: {change['points']:+.1f} points, 95 % interval [{low:+.1f}, {high:+.1f}].",
            f"  {summary['seconds']:.0f} seconds in all. Page with pictures and transcripts: {summary['page']}",
        ]
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    args = _arguments(argv)
    config = DemoConfig(
        out=args.out,
        env=args.env,
        data=args.data,
        policy=args.policy,
        preset=args.preset,
        seed=args.seed,
        steps=args.steps,
        held_out_per_type=args.held_out,
        held_out_splits=tuple(args.held_out_splits),
    )
    try:
        summary = run_demo(config, progress=make_progress())
    except SkillCError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("Interrupted outside training; the same command goes on from what is finished.", file=sys.stderr)
        return 130
    if not summary["finished"]:
        print(f"Interrupted after {summary['steps']} updates; the same command goes on from there.", file=sys.stderr)
        return 130
    print(describe(summary))
    return 0


if __name__ == "__main__":
    sys.exit(main())
