"""Trains SB3-contrib's MaskablePPO on small generated Pick houses through the discrete view, beside the uniform policy.

    python -m benchmarks.maskable_ppo --seeds 0 1 2

The agent reads no text: it sees which words stand in the task, the last exchanges and the newest answer, and chooses
commands by number. It is trained and tested on the same few houses; the figures say that the view works, no more.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import skillc_gym  # noqa: F401 - registers the environments
from skillc_gym.errors import missing_extra
from skillc_gym.wrappers import DiscreteCommands, TextHistory, WordPresence
from trainers.stats import wilson
from trainers.tracking import provenance, write_json

Policy = Callable[[Any, Any], int]


def make_env(houses: int = 8, max_episode_steps: int = 20) -> gymnasium.Env[Any, Any]:
    """Generated Pick houses as vectors of words and numbered commands."""
    generator = {"seed": 0, "games_per_type": houses, "size": "small"}
    env = gymnasium.make(
        "skillc/ALFWorld-v0",
        data="generated",
        task_types="pick",
        generator=generator,
        max_episode_steps=max_episode_steps,
    )
    return WordPresence(TextHistory(DiscreteCommands(env), length=2))


def wins(env: gymnasium.Env[Any, Any], policy: Policy, episodes: int, seed: int) -> int:
    """Plays episodes from consecutive seeds; returns how many were won."""
    won = 0
    for index in range(episodes):
        observation, info = env.reset(seed=seed + index)
        over = False
        while not over:
            observation, _, terminated, truncated, info = env.step(policy(observation, info["action_mask"]))
            over = terminated or truncated
        won += int(info["won"])
    return won


def train(steps: int, seed: int) -> Any:
    """Trains MaskablePPO; returns the model.

    Raises:
        MissingExtraError: sb3-contrib is not installed.
    """
    try:
        from sb3_contrib import MaskablePPO
    except ImportError as error:
        raise missing_extra("sb3-contrib", "sb3") from error
    model = MaskablePPO(
        "MlpPolicy", make_env(), n_steps=512, batch_size=128, gamma=0.97, learning_rate=1e-3, ent_coef=0.01, seed=seed
    )
    return model.learn(steps)


def measure(steps: int, seed: int, episodes: int) -> dict[str, Any]:
    """Trains with one seed and compares with the uniform policy on the same episodes."""
    started = time.perf_counter()
    model = train(steps, seed)
    seconds = time.perf_counter() - started
    rng = np.random.default_rng(seed)
    env = make_env()
    trained = wins(env, lambda seen, mask: int(model.predict(seen, action_masks=mask)[0]), episodes, 10_000)
    uniform = wins(env, lambda _, mask: int(rng.choice(np.flatnonzero(mask))), episodes, 10_000)
    return {
        "seed": seed,
        "steps": steps,
        "episodes": episodes,
        "won": trained,
        "won_uniform": uniform,
        "seconds": seconds,
    }


def _table(found: Sequence[dict[str, Any]]) -> str:
    lines = [
        "# MaskablePPO through the discrete view",
        "",
        "SB3-contrib's MaskablePPO on eight small generated Pick houses, seen through "
        "`WordPresence(TextHistory(DiscreteCommands(env)))`, episodes of at most 20 steps, beside the uniform policy "
        "over admissible commands on the same episodes.",
        "",
        "| seed | steps | MaskablePPO | uniform | seconds of training |",
        "|---|---|---|---|---|",
    ]
    for run in found:
        cells = [_rate(run["won"], run["episodes"]), _rate(run["won_uniform"], run["episodes"])]
        lines.append(f"| {run['seed']} | {run['steps']:,} | {cells[0]} | {cells[1]} | {run['seconds']:.0f} |")
    seeds = " ".join(str(run["seed"]) for run in found)
    command = f"python -m benchmarks.maskable_ppo --seeds {seeds} --steps {found[0]['steps']}"
    return "\n".join([*lines, "", f"`{command}`", ""])


def _rate(won: int, episodes: int) -> str:
    interval = wilson(won, episodes)
    return f"{100 * won / episodes:.1f} % [{100 * interval.low:.0f}, {100 * interval.high:.0f}]"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        description="Train MaskablePPO through the discrete view.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=50_000, help="environment steps of training")
    parser.add_argument("--episodes", type=int, default=400, help="episodes of the comparison")
    parser.add_argument("--out", type=Path, default=Path("docs/results/maskable_ppo"), help="record, without suffix")
    args = parser.parse_args(argv)
    found = []
    for seed in args.seeds:
        found.append(measure(args.steps, seed, args.episodes))
        print(f"seed {seed}: {found[-1]}", file=sys.stderr, flush=True)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    write_json(args.out.with_suffix(".json"), {"runs": found, "versions": provenance()})
    args.out.with_suffix(".md").write_text(_table(found), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
