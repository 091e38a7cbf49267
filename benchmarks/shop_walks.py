"""Random customers of WebShop, and what they cost: the walks that the benchmarks share."""

from __future__ import annotations

import random
import resource
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

from skillc_gym.envs.webshop import WebShopEnv
from skillc_gym.envs.webshop.experts import words

__all__ = ["EPISODE", "QUERIES", "anonymous_megabytes", "environment_kilobytes", "peak_megabytes", "resets", "walk"]

EPISODE = 15
"""Steps after which a walk begins again."""
PATTERN = "search[<query>]"

Query = Callable[[dict[str, Any], random.Random], str]


def own_words(info: dict[str, Any], _: random.Random) -> str:
    """The first six words of the episode's goal: searching for them again finds what was found before."""
    return " ".join(words(info["goal"])[:6])


def new_words(info: dict[str, Any], rng: random.Random) -> str:
    """The same with a number that was never searched for."""
    return f"{own_words(info, rng)} {rng.randrange(10**9)}"


QUERIES: dict[str, Query] = {"own": own_words, "new": new_words}
"""What walks search for."""


def walk(env: WebShopEnv, steps: int, *, seed: int = 0, query: str = "own") -> float:
    """Clicks at random among the actions listed at every step; a random task every `EPISODE` steps.

    Args:
        env: The environment.
        steps: The number of steps.
        seed: Seeds the clicks and the tasks.
        query: What is searched for: a name in `QUERIES`.

    Returns:
        Steps per second of processor time, the choosing and the resets included.
    """
    rng, text = random.Random(seed), QUERIES[query]
    _, info = env.reset(seed=seed)
    started = time.process_time()
    for number in range(1, steps + 1):
        action = rng.choice(info["available_actions"])
        if action == PATTERN:
            action = f"search[{text(info, rng)}]"
        _, _, bought, _, info = env.step(action)
        if bought or number % EPISODE == 0:
            _, info = env.reset()
    return steps / (time.process_time() - started)


def resets(env: WebShopEnv, number: int) -> float:
    """Returns the microseconds of processor time of a reset to a random task."""
    env.reset(seed=0)
    started = time.process_time()
    for _ in range(number):
        env.reset()
    return 1e6 * (time.process_time() - started) / number


def environment_kilobytes(env: WebShopEnv, number: int) -> float:
    """Returns the memory of a further environment on the same catalogue, each in an episode of its own."""
    walk(env, 20 * EPISODE)
    text = own_words({"goal": env.goals.goal(env.goals.range[0]).instruction}, random.Random(0))
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    envs = [env.copy() for _ in range(number)]
    for place, other in enumerate(envs):
        other.reset(seed=place)
        other.step(f"search[{text}]")
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return (after - before) / len(envs) / 1e3


def anonymous_megabytes() -> float:
    """Returns the memory that a process shares with no other: all but mapped files. All of it where nothing tells."""
    try:
        lines = Path("/proc/self/smaps_rollup").read_text("ascii").splitlines()
    except OSError:
        return peak_megabytes()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Anonymous:")) / 1e6


def peak_megabytes() -> float:
    """Returns the most memory the process has had so far, mapped files included."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
