"""Plays listed actions and strings of all kinds in WebShop: an exception ends it, and growth of memory is reported.

python -m benchmarks.odd_actions --data FOLDER --actions 10000000
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from skillc_gym.envs.webshop import WebShopEnv
from skillc_gym.errors import SkillCError

PIECES = (
    "search[", "click[", "]", "[", "[]", "<r>", "<c> beauty", "<q> x", "buy now", "< prev", "next >", "features",
    "back to search", "\n", "\x00", "\ud800", "é", "😀", "中文", "'", '"', "{0}", "%s", "..", "/",
    "search_results", "item_page",
)  # fmt: skip
"""What odd actions are made of."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    options = _parser().parse_args(arguments)
    try:
        env = WebShopEnv(data=options.data, goals=options.goals, compat=options.compat, observation_mode=options.mode)
    except SkillCError as error:
        print(error, file=sys.stderr)
        return 2
    print(play(env, options.actions, seed=options.seed, longest=options.long))
    return 0


def play(env: WebShopEnv, count: int, *, seed: int, longest: int) -> str:
    """Plays so many actions, half of them listed ones; returns a sentence.

    Args:
        env: The environment; reset every 50 actions.
        count: Number of actions.
        seed: Decides them all.
        longest: Length of the longest queries; 0 for none.
    """
    rng = random.Random(seed)
    actions = _strings(rng, longest)
    _, info = env.reset(seed=seed)
    memory: list[float] = []
    for number in range(count):
        listed = info["available_actions"]
        action = rng.choice(listed) if listed and rng.random() < 0.5 else next(actions)
        _, _, ended, _, info = env.step(action)
        if ended or number % 50 == 49:
            _, info = env.reset()
        if number % max(count // 10, 1) == 0:
            memory.append(_resident())
            print(f"{number:10,d} actions, {memory[-1]:.1f} MB resident", flush=True)
    growth = _resident() - memory[len(memory) // 2]
    return f"{count:,} actions, no exception; {growth:+.1f} MB since half-time"


def _strings(rng: random.Random, long: int) -> Iterator[str]:
    while True:
        text = "".join(rng.choice(PIECES) for _ in range(rng.randrange(8)))
        if rng.random() < 0.3:
            text = f"search[{text}{rng.randrange(10**6)} shoes]"
        if long and rng.random() < 1 / 2_000:
            text = f"search[{rng.choice(PIECES) * (long // 4)} {rng.random()}]"
        yield text


def _resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=None, help="catalogue; $WEBSHOP_DATA if left out, or 'generated'")
    parser.add_argument("--goals", default="synthetic", choices=["synthetic", "human"])
    parser.add_argument("--actions", type=int, default=1_000_000)
    parser.add_argument("--long", type=int, default=100_000, help="length of the longest queries; 0 for none")
    parser.add_argument("--compat", default="fixed", choices=["fixed", "upstream"])
    parser.add_argument("--mode", default="text", help="observation mode")
    parser.add_argument("--seed", type=int, default=0)
    return parser


if __name__ == "__main__":
    sys.exit(main())
