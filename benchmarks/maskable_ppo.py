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
from typing import Any

import gymnasium
import numpy as np

import skillc_gym  # noqa: F401 - registers the environments
from benchmarks.measuring import measurement, options_parser
from skillc_gym.errors import missing_extra
from skillc_gym.wrappers import DiscreteCommands, TextHistory, WordPresence

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


def main(words: Sequence[str] | None = None) -> int:
    """Trains with every seed; returns 2 where that was refused."""
    parser = options_parser(__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=50_000, help="environment steps of training")
    parser.add_argument("--episodes", type=int, default=400, help="episodes of the comparison")
    return measurement(parser, _measure, words)


def _measure(options: argparse.Namespace) -> dict[str, Any]:
    return {"runs": [measure(options.steps, seed, options.episodes) for seed in options.seeds]}


if __name__ == "__main__":
    sys.exit(main())
