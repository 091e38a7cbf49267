"""Runs the demonstration over seeds and methods and writes down what came of it.

    python -m benchmarks.record_demos --seeds 0 1 2 --presets skillc grpo

Every finished demonstration is kept in its folder under --runs and is not run again; the record under --out is written
anew from all of them.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.demo_tables import as_markdown
from skillc_gym.envs.registry import warm_started_names
from skillc_gym.errors import SkillCError
from trainers.commands.demo import DemoConfig, check_same, run_demo
from trainers.report.records import RunRecords
from trainers.tracking.progress import make_progress
from trainers.tracking.run_folder import write_json
from trainers.warmstart.make import CARD

VALIDATED = ("step", "overall_with", "overall_without", "sr_with", "sr_without", "gap_smoothed", "active", "n")
"""What is kept of every validation."""


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
    args = parser.parse_args(argv)
    kind = "generated" if args.data == "generated" else "real"
    kind = kind if args.env == DemoConfig.env else f"{args.env}_{kind}"
    args.runs = args.runs or Path("runs/record") / kind
    args.out = args.out or Path("docs/results") / f"demo_{kind}"
    return args


def demonstrate(config: DemoConfig) -> dict[str, Any]:
    """Runs one demonstration, or reads what a finished one left; returns its record."""
    done = config.out / "summary.json"
    if done.exists():
        check_same(config)
    else:
        progress = make_progress()
        try:
            if not run_demo(config, progress=progress)["finished"]:
                raise KeyboardInterrupt
        finally:
            progress.close()
    return _record(config.out, json.loads(done.read_text(encoding="utf-8")))


def _record(run: Path, summary: Mapping[str, Any]) -> dict[str, Any]:
    records = RunRecords.read(run)
    left_out = ("page", "pictures", "transcripts")
    return {
        **{key: value for key, value in summary.items() if key not in left_out},
        "data": summary["data"] if summary["data"] == "generated" else "real",
        "config": {key: value for key, value in records.config.items() if key not in ("model", "run", "data")},
        "policy": _policy(Path(records.config["model"])),
        "git": json.loads((run / "versions.json").read_text(encoding="utf-8"))["git"],
        "retired": [
            {"type": kind, "step": step, "reason": reason} for kind, (step, reason) in records.retirements.items()
        ],
        "validations": [{key: found[key] for key in VALIDATED} for found in records.validations],
        "seconds_of": {
            key.removeprefix("seconds_"): round(sum(found[key] for found in records.train), 1)
            for key in sorted(records.train[0])
            if key.startswith("seconds_")
        },
    }


def _policy(folder: Path) -> dict[str, Any]:
    """What the card of a warm-started policy says of it; empty for another model."""
    card = folder / CARD
    if not card.exists():
        return {}
    found = json.loads(card.read_text(encoding="utf-8"))
    games = found["recipe"]["demonstrations"]["env_kwargs"]
    games["data"] = games["data"] if games["data"] == "generated" else "real"
    return {key: found[key] for key in ("parameters", "weights_sha256", "demonstrator_success", "recipe")}


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
        records = [demonstrate(config) for config in configs]
    except KeyboardInterrupt:
        print("Interrupted; the same command goes on from there.", file=sys.stderr)
        return 130
    except SkillCError as error:
        print(f"record_demos: {error}", file=sys.stderr)
        return 2
    _write(args, configs[0].out, records)
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


def _write(args: argparse.Namespace, drawn: Path, records: Sequence[Mapping[str, Any]]) -> None:
    command = _command(args)
    found = json.loads((drawn / "versions.json").read_text(encoding="utf-8"))
    args.out.parent.mkdir(parents=True, exist_ok=True)
    write_json(args.out.with_suffix(".json"), {"command": command, "versions": found, "runs": list(records)})
    versions = {**found.get("packages", {}), "Python": found.get("python", "?")}
    args.out.with_suffix(".md").write_text(as_markdown(records, command, versions), encoding="utf-8")
    _keep_pictures(drawn, args.out)


if __name__ == "__main__":
    sys.exit(main())
