"""Runs methods in both worlds for a few updates and compares their figures, bit for bit, with an earlier revision's.

    python -m benchmarks.preset_traces --runs runs/before --out before.json      # write a record
    python -m benchmarks.preset_traces --runs runs/after --against before.json  # compare with it

A trace is the hash of a run's metrics, times left out, and of its final weights. Sums depend on the processor, so a
record is compared on the kind of machine that made it. Keys that a later revision adds to the metrics do not count:
the record lists those that it covers.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from skillc_gym.errors import SkillCError
from trainers.base import SHIPPED
from trainers.config import TrainConfig
from trainers.recipes import recipe_names
from trainers.tracking import RunFolder, provenance, write_json

COMMON: Mapping[str, Any] = {
    "model": SHIPPED,
    "data": "generated",
    "chat": "compact",
    "steps": 4,
    "seed": 3,
    "tasks_per_step": 4,
    "group_size": 4,
    "panel_per_type": 2,
    "validate_every": 2,
    "save_every": 4,
    "stream_norms_every": 2,
    "micro_batches": 2,
    "learning_rate": 3e-4,
    "task_sampling": "types",
    "max_context": 2048,
    "resume": "never",
}
WORLDS: Mapping[str, Mapping[str, Any]] = {
    "alfworld": {
        "env_options": {"generator": {"seed": 0, "games_per_type": 12, "size": "small"}},
        "max_episode_steps": 12,
        "max_reply_tokens": 20,
    },
    "webshop": {
        "env_options": {"generator": {"seed": 0, "size": 1000}},
        "chat_options": {"role": "customer"},
        "max_episode_steps": 8,
        "max_reply_tokens": 32,
        "panel_per_type": 4,
    },
}
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "minibatches": {"num_minibatches": 2},
    "window": {"form": "window:2"},
    "token": {"loss_aggregation": "token", "kl_coef": 0.0, "method_options": {"correction_mask": "success"}},
    "lora": {"lora_rank": 4},
    "greedy": {"eval_greedy": True, "task_sampling": "uniform", "method_options": {"key": "task"}},
}
"""Further settings of SkillC in the houses."""


def configurations(methods: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Settings of every run, by its name."""
    runs = {
        f"{world}-{method}": {**COMMON, **WORLDS[world], "env": world, "method": method}
        for method in methods
        for world in WORLDS
    }
    if "skillc" in methods:
        runs |= {f"alfworld-skillc-{name}": {**runs["alfworld-skillc"], **more} for name, more in VARIANTS.items()}
    return runs


def trace(folder: Path, keys: Sequence[str] | None = None) -> dict[str, Any]:
    """Describes a finished run.

    Args:
        folder: The run's folder.
        keys: Which figures of the metrics count; all but times if None.
    """
    records = RunFolder(folder).metrics()
    covered = sorted({key for record in records for key in record if not key.startswith("seconds")})
    counted = covered if keys is None else list(keys)
    kept = [{key: record[key] for key in counted if key in record} for record in records]
    weights = sorted((folder / "policy").glob("*.safetensors"))
    return {
        "keys": counted,
        "lines": len(kept),
        "metrics_sha256": hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest(),
        "weights_sha256": [hashlib.sha256(path.read_bytes()).hexdigest() for path in weights],
    }


def compare(folders: Mapping[str, Path], record: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Names the runs whose traces differ from the record's, or that one side lacks."""
    names = sorted({*folders, *record})
    return [
        name
        for name in names
        if name not in folders or name not in record or trace(folders[name], record[name]["keys"]) != record[name]
    ]


def _run_all(root: Path, methods: Sequence[str]) -> dict[str, Path]:
    from trainers.training import run

    folders = {}
    for name, settings in configurations(methods).items():
        folders[name] = root / name
        if not (folders[name] / "policy").is_dir():
            sys.stderr.write(f"{name}\n")
            run(TrainConfig(**{**settings, "run": str(folders[name]), "resume": "auto"}))
    return folders


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compare the figures of short runs of every method, bit for bit.")
    parser.add_argument("--runs", type=Path, default=Path("runs/traces"), help="where runs are kept")
    parser.add_argument("--methods", nargs="+", default=list(recipe_names()), help="default: all")
    parser.add_argument("--out", type=Path, help="record to write")
    parser.add_argument("--against", type=Path, help="record to compare with")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; status 1 if something differs."""
    args = _arguments(argv)
    try:
        folders = _run_all(args.runs, args.methods)
    except SkillCError as error:
        print(f"preset_traces: {error}", file=sys.stderr)
        return 2
    if args.out:
        write_json(args.out, {"versions": provenance(), "runs": {name: trace(path) for name, path in folders.items()}})
    if args.against:
        record = json.loads(args.against.read_text(encoding="utf-8"))["runs"]
        differing = compare(folders, {name: record[name] for name in record if name in folders})
        print(f"{len(folders)} runs, {len(differing)} differ" + "".join(f"\n  {name}" for name in differing))
        return 1 if differing else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
