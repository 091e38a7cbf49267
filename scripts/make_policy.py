"""Makes a warm-started tiny policy: ``python -m scripts.make_policy --out runs/policy``."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from skillc_gym.envs.registry import warm_started_names
from skillc_gym.errors import SkillCError
from trainers.warmstart.cloning import CloningConfig
from trainers.warmstart.demonstrations import DemonstrationConfig
from trainers.warmstart.make import PolicyRecipe, make_policy
from trainers.warmstart.model import SMALL, TINY
from trainers.warmstart.recipes import data_recipe, shipped_recipe

SHIPPED = shipped_recipe()


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="checkpoint folder to write")
    parser.add_argument("--env", default="alfworld", choices=warm_started_names(), help="the environment")
    parser.add_argument("--data", default="generated", help="the environment's folder or archive, or 'generated'")
    parser.add_argument("--seed", type=int, default=0, help="seed of demonstrations and of the initial weights")
    parser.add_argument("--episodes", type=int, default=SHIPPED.episodes, help="number of demonstrations")
    parser.add_argument("--batches", type=int, default=SHIPPED.cloning.batches, help="optimiser steps of cloning")
    parser.add_argument("--batch-episodes", type=int, default=CloningConfig.batch_episodes)
    parser.add_argument("--learning-rate", type=float, default=CloningConfig.learning_rate)
    parser.add_argument("--max-steps", type=int, default=30, help="longest demonstration, in commands")
    parser.add_argument("--slips", type=float, default=DemonstrationConfig.slips, help="probability per step of a slip")
    parser.add_argument("--max-length", type=int, default=4096, help="longest context, in tokens")
    parser.add_argument("--shape", choices=["tiny", "small"], default="tiny", help="0.9 or some 28 million parameters")
    return parser.parse_args(argv)


def recipe_for(args: argparse.Namespace) -> PolicyRecipe:
    """Turns command-line arguments into a recipe."""
    recipe = shipped_recipe(args.env) if args.data == "generated" else data_recipe(args.data, args.env)
    return replace(
        recipe,
        demonstrations=replace(recipe.demonstrations, max_steps=args.max_steps, slips=args.slips),
        episodes=args.episodes,
        cloning=CloningConfig(
            batches=args.batches,
            batch_episodes=args.batch_episodes,
            learning_rate=args.learning_rate,
            seed=args.seed,
        ),
        size=TINY if args.shape == "tiny" else SMALL,
        max_length=args.max_length,
        seed=args.seed,
    )


def show(phase: str, done: int, total: int, loss: float) -> None:
    """Rewrites one progress line."""
    tail = "" if math.isnan(loss) else f"  loss {loss:.3f}"
    end = "\n" if done == total else "\r" if sys.stderr.isatty() else ""
    if end or done % max(1, total // 20) == 0:
        print(f"{phase:>14} {done:5d}/{total}{tail}", end=end or "\n", file=sys.stderr, flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    args = _arguments(argv)
    try:
        card = make_policy(recipe_for(args), args.out, progress=show)
    except SkillCError as error:
        print(f"make_policy: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("Interrupted; no policy was written.", file=sys.stderr)
        return 130
    print(json.dumps({key: value for key, value in card.items() if key != "recipe"}, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
