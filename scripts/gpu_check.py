"""Checks and measures training on this machine's GPU: ``python -m scripts.gpu_check --out docs/results/gpu``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from skillc_gym.errors import SkillCError
from trainers.commands.gpu_check import GpuCheckConfig, as_table, run_gpu_check
from trainers.tracking.progress import make_progress
from trainers.warmstart.model import TINY


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/gpu_check"), help="folder for policy, run and figures")
    parser.add_argument("--steps", type=int, default=GpuCheckConfig.steps, help="SkillC updates")
    parser.add_argument("--engine", choices=["transformers", "vllm"], default="transformers")
    parser.add_argument("--tiny", action="store_true", help="0.9 instead of some 28 million parameters, little cloning")
    parser.add_argument("--allow-cpu", action="store_true", help="run without a GPU, to try the check itself")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    args = _arguments(argv)
    config = GpuCheckConfig(out=args.out, steps=args.steps, engine=args.engine, allow_cpu=args.allow_cpu)
    if args.tiny:
        config = replace(config, size=TINY, demonstrations=240, cloning_batches=20, tasks_per_step=4, group_size=4)
    try:
        report = run_gpu_check(config, progress=make_progress())
    except SkillCError as error:
        print(f"gpu_check: {error}", file=sys.stderr)
        return 2
    table = as_table(report)
    (args.out / "gpu_check.md").write_text(table + "\n", encoding="utf-8")
    print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
