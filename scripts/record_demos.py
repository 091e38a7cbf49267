"""Runs the demonstration over seeds and methods and writes down what came of it.

    python -m scripts.record_demos --seeds 0 1 2 --presets skillc grpo

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

from skillc_gym.errors import SkillCError
from trainers.demo import DemoConfig, run_demo
from trainers.progress import make_progress, short_type
from trainers.run_records import RunRecords
from trainers.runs import write_json

VALIDATED = ("step", "overall_with", "overall_without", "sr_with", "sr_without", "gap_smoothed", "active", "n")
"""What is kept of every validation."""


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Run the demonstration over seeds and methods, and record it.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--presets", nargs="+", default=["skillc", "grpo"], help="methods; the first is drawn")
    parser.add_argument("--data", default="generated", help="'generated', or a folder or archive of ALFWorld games")
    parser.add_argument("--policy", type=Path, help="warm-started policy; default: the demonstration's own")
    parser.add_argument("--steps", type=int, default=DemoConfig.steps, help="updates")
    parser.add_argument("--held-out", type=int, default=40, help="held-out games per task type, 0 for all")
    parser.add_argument("--held-out-splits", nargs="+", default=["valid_unseen"], help="the headline first")
    parser.add_argument("--runs", type=Path, default=Path("runs/record"), help="where the runs are kept")
    parser.add_argument("--out", type=Path, default=Path("docs/results/demo_generated"), help="record, without suffix")
    return parser.parse_args(argv)


def demonstrate(config: DemoConfig) -> dict[str, Any]:
    """Runs one demonstration, or reads what a finished one left; returns its record."""
    done = config.out / "summary.json"
    if not done.exists():
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


def _percent(rate: float, interval: Sequence[float]) -> str:
    return f"{100 * rate:.1f} [{100 * interval[0]:.0f}, {100 * interval[1]:.0f}]"


def _row(record: Mapping[str, Any], split: str) -> list[str]:
    found = record["splits"][split]
    rates = [
        _percent(found[f"sr_{arm}_{when}"], found[f"sr_{arm}_{when}_interval"])
        for arm in ("without", "with")
        for when in ("before", "after")
    ]
    change = found["change_without"]
    by_gap = sorted(short_type(entry["type"]) for entry in record["retired"] if entry["reason"] == "gap")
    return [
        record["preset"],
        str(record["seed"]),
        *rates,
        f"**{change['points']:+.1f}** [{change['interval'][0]:+.1f}, {change['interval'][1]:+.1f}]",
        ", ".join(by_gap) or "none",
        f"{record['seconds']:.0f}",
    ]


HEAD = (
    "method",
    "seed",
    "without, before",
    "without, after",
    "with, before",
    "with, after",
    "change without",
    "retired by gap",
    "seconds",
)


def _table(records: Sequence[Mapping[str, Any]], split: str) -> list[str]:
    found = records[0]["splits"][split]
    rows = [HEAD, ["---"] * len(HEAD), *(_row(record, split) for record in records)]
    return [
        "",
        f"`{split}`: {found['games']} games, panel `{found['panel_sha256'][:12]}`.",
        "",
        *("| " + " | ".join(row) + " |" for row in rows),
    ]


def as_markdown(records: Sequence[Mapping[str, Any]], command: str, versions: Mapping[str, Any]) -> str:
    """Puts the records into one table per held-out split."""
    first = records[0]
    return "\n".join(
        [
            f"# The demonstration on {'generated' if first['data'] == 'generated' else 'real'} games",
            "",
            "Success in per cent with 95 % intervals on held-out games, each played with and without skills, before "
            f"and after {first['steps']} updates. The change is paired by game.",
            *(line for split in first["splits"] for line in _table(records, split)),
            *_curves(records),
            "",
            f"`{command}`",
            "",
            "With " + ", ".join(f"{name} {version}" for name, version in sorted(versions.items())) + ".",
            "",
        ]
    )


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
            data=args.data,
            policy=args.policy,
            preset=preset,
            seed=seed,
            steps=args.steps,
            held_out_per_type=args.held_out or None,
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
    words = ["python -m scripts.record_demos"]
    words += ["" if args.data == "generated" else "--data GAMES", "--policy POLICY" if args.policy else ""]
    words += ["--presets", *args.presets, "--seeds", *map(str, args.seeds), f"--steps {args.steps}"]
    words += [f"--held-out {args.held_out}", "--held-out-splits", *args.held_out_splits]
    return " ".join(word for word in words if word)


def _curves(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """Success on the held-back panel after every validation, one column per run, without / with skills."""
    names = [f"{record['preset']} {record['seed']}" for record in records]
    columns = [{found["step"]: found for found in record["validations"]} for record in records]
    rows = [[str(step), *(_pair(column[step]) if step in column else "" for column in columns)] for step in columns[0]]
    size = sum(int(n) for n in records[0]["validations"][0]["n"].values())
    table = [["update", *names], ["---"] * (1 + len(names)), *rows]
    return [
        "",
        f"Success without / with skills on the panel of {size} training games that steers the curriculum, per cent:",
        "",
        *("| " + " | ".join(row) + " |" for row in table),
    ]


def _pair(found: Mapping[str, Any]) -> str:
    return f"{100 * found['overall_without']:.0f} / {100 * found['overall_with']:.0f}"


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
