"""Runs the demonstration over seeds and methods and writes down what came of it.

    python -m benchmarks.record_demos --seeds 0 1 2 --presets skillc grpo

Every finished demonstration is kept in its folder under --runs and is not run again, an interrupted one goes on; what
happens stands in progress.log there. The record under --out is written from all of them: it is of one clean revision
and one panel, and holds the outcome of every task.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shutil
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from benchmarks.demo_record import differences, one_panel, panels, record
from benchmarks.demo_tables import as_markdown
from benchmarks.revision import one_revision, require_clean
from skillc_gym.envs.registry import warm_started_names
from skillc_gym.errors import SkillCError
from skillc_lab.commands.demo import DemoConfig, check_same, run_demo
from skillc_lab.report import SeedRun, save_comparison
from trainers.tracking import PlainProgress, make_folder, write_json

MOST_AT_ONCE = 2


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Run the demonstration over seeds and methods, and record it.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--presets", nargs="+", default=["skillc", "grpo"], help="methods; the first is drawn")
    parser.add_argument("--env", default="alfworld", choices=warm_started_names(), help="the environment")
    parser.add_argument("--data", default="generated", help="'generated', or the environment's folder or archive")
    parser.add_argument("--policy", type=Path, help="warm-started policy; default: the demonstration's own")
    parser.add_argument("--steps", type=int, default=60, help="updates")
    parser.add_argument("--held-out", type=int, help="held-out tasks per task type, 0 for all (default: the demo's)")
    parser.add_argument("--held-out-splits", nargs="+", default=[], help="the headline first (default: the demo's)")
    parser.add_argument("--runs", type=Path, help="where the runs are kept (default: under runs/record)")
    parser.add_argument(
        "--out",
        type=Path,
        help="record, without suffix (default: docs/results/demo_generated and the like)",
    )
    parser.add_argument("--parallel", type=int, default=1, choices=range(1, MOST_AT_ONCE + 1), help="runs at once")
    parser.add_argument(
        "--allow-changes", action="store_true", help="record from a changed working tree, and say so in the record"
    )
    args = parser.parse_args(argv)
    kind = "generated" if args.data == "generated" else "real"
    kind = kind if args.env == DemoConfig.env else f"{args.env}_{kind}"
    args.runs = args.runs or Path("runs/record") / kind
    args.out = args.out or Path("docs/results") / f"demo_{kind}"
    return args


def demonstrate(config: DemoConfig) -> bool:
    """Runs one demonstration unless it is finished; tells whether it is now. What happens is written beside it."""
    if (config.out / "summary.json").exists():
        check_same(config)
        return True
    make_folder(config.out)
    with (config.out / "progress.log").open("a", encoding="utf-8") as log:
        return bool(run_demo(config, progress=PlainProgress(log))["finished"])


def demonstrate_all(configs: Sequence[DemoConfig], parallel: int) -> bool:
    """Runs demonstrations, so many at a time, each in a process of its own with one thread.

    Returns:
        Whether all are finished; an interruption leaves some that are not.
    """
    # Before the processes begin: torch reads it when it is imported.
    os.environ["OMP_NUM_THREADS"] = "1"
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(parallel, mp_context=context) as pool:
        return all(pool.map(demonstrate, configs))


def _keep_pictures(run: Path, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    for picture in sorted((run / "report").glob("*.png")):
        shutil.copyfile(picture, out / picture.name)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    args = _arguments(argv)
    configs = [
        DemoConfig(
            out=args.runs / f"{preset}-seed{seed}",
            env=args.env,
            data=args.data,
            policy=args.policy,
            preset=preset,
            seed=seed,
            steps=args.steps,
            held_out_per_type=args.held_out,
            held_out_splits=tuple(args.held_out_splits),
        )
        for preset in args.presets
        for seed in args.seeds
    ]
    try:
        require_clean(allow_changes=args.allow_changes)
        if not demonstrate_all(configs, args.parallel):
            raise KeyboardInterrupt
        _write(args, configs)
    except KeyboardInterrupt:
        print("Interrupted; the same command goes on from there.", file=sys.stderr)
        return 130
    except SkillCError as error:
        print(f"record_demos: {error}", file=sys.stderr)
        return 2
    return 0


def _command(args: argparse.Namespace) -> str:
    """The command that makes the record, with stand-ins for what lies elsewhere on another machine."""
    words = ["python -m benchmarks.record_demos"]
    where = [
        "" if args.env == DemoConfig.env else f"--env {args.env}",
        "" if args.data == "generated" else "--data DATA",
    ]
    where = [word for word in where if word]
    if args.policy:
        words.insert(0, " ".join(["skillc make-policy", *where, "--out POLICY &&"]))
    words += [*where, "--policy POLICY" if args.policy else ""]
    words += ["--presets", *args.presets, "--seeds", *map(str, args.seeds), f"--steps {args.steps}"]
    words += [] if args.held_out is None else [f"--held-out {args.held_out}"]
    words += ["--held-out-splits", *args.held_out_splits] if args.held_out_splits else []
    return " ".join(word for word in words if word)


def _write(args: argparse.Namespace, configs: Sequence[DemoConfig]) -> None:
    records = [record(config) for config in configs]
    one_panel(records)
    whole = {
        "command": _command(args),
        **one_revision((found["git"] for found in records), allow_changes=args.allow_changes),
        "versions": json.loads((configs[0].out / "versions.json").read_text(encoding="utf-8")),
        "panels": panels(configs[0]),
        "differences": differences(configs),
        "runs": records,
    }
    args.out.parent.mkdir(parents=True, exist_ok=True)
    write_json(args.out.with_suffix(".json"), whole)
    _keep_pictures(configs[0].out, args.out)
    compared = len(args.presets) > 1
    if compared:
        runs = [SeedRun.of_record(found) for found in records]
        save_comparison(runs, args.out / "methods.png", heading=f"{' beside '.join(args.presets)}, {args.out.stem}")
    picture = f"{args.out.name}/methods.png" if compared else None
    args.out.with_suffix(".md").write_text(as_markdown(whole, picture), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
