"""The WebShop part of the benchmark: steps, resets, searches and memory at 1,000 products.

Upstream needs Java, gym 0.24 and a model of spaCy and does not run beside it; its figures were recorded elsewhere, and
the table says so.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
import tracemalloc
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium

from benchmarks.measuring import Bench, Figure, in_fresh_process, seconds_of
from skillc_gym import WEBSHOP_ID
from skillc_gym.envs.webshop import WebShopEnv
from skillc_gym.envs.webshop.catalog import open_catalog
from skillc_gym.envs.webshop.experts import words
from skillc_gym.errors import MissingDataError

EPISODE = 15
"""Steps after which a walk begins again."""
PATTERN = "search[<query>]"


def goal_words(goal: str) -> str:
    """The first six words of an episode's goal."""
    return " ".join(words(goal)[:6])


def walk(env: gymnasium.Env[str, str], steps: int, *, seed: int = 0, new: bool = False) -> float:
    """Clicks at random among the actions listed, a random task every `EPISODE` steps; steps per second of processor.

    It searches for words of the goal, which finds what was found before, or adds a number to make every search new.
    """
    rng = random.Random(seed)
    _, info = env.reset(seed=seed)
    started = time.process_time()
    for number in range(1, steps + 1):
        action = rng.choice(info["available_actions"])
        if action == PATTERN:
            more = f" {rng.randrange(10**9)}" if new else ""
            action = f"search[{goal_words(info['goal'])}{more}]"
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
    text = goal_words(env.goals.goal(env.goals.range[0]).instruction)
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
    """Returns the memory that a process shares with no other: all but mapped files; nan where nothing tells."""
    try:
        lines = Path("/proc/self/smaps_rollup").read_text("ascii").splitlines()
    except OSError:
        return float("nan")
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Anonymous:")) / 1e6


PRODUCTS, ENVIRONMENTS, SEARCHES, ROUNDS = 1_000, 2_000, 2_000, 3
UPSTREAM = {"rate": 51.0, "reset": 3_300.0, "search": 6.2, "memory": 888.0}
"""princeton-nlp/WebShop at 64fa2a5 with 1,000 products on another machine of this kind: steps per second of processor
time with the list of actions, microseconds a reset, milliseconds a search with its 50 documents, MB of a process after
400 steps."""

Choice = dict[str, Any]
"""Which products: the keyword arguments of the environment."""


def measure(options: argparse.Namespace) -> Bench:
    """Measures the environment; upstream's figures are recorded ones."""
    choice = _choice(options.webshop)
    began = time.perf_counter()
    env = WebShopEnv(**choice)
    opening = 1e3 * (time.perf_counter() - began)
    steps = 10_000 if options.quick else 100_000
    walk(env, steps // 10)
    rate, new_rate = (
        statistics.median(walk(env, steps, seed=seed, new=new) for seed in range(ROUNDS)) for new in (False, True)
    )
    made = gymnasium.make(WEBSHOP_ID, disable_env_checker=True, **choice)
    figures = [
        _beside("steps/s of one core's time, random clicks, actions listed", rate, "rate", 20_000, more=True),
        _beside("the same, every search a new one, steps/s", new_rate, "rate", more=True),
        Figure("the same walks through gymnasium.make, steps/s", walk(made, steps)),
        _beside("reset, us", resets(env, 20_000), "reset", 20),
        _beside("search, ms (median)", _search(env), "search"),
        Figure("a further environment in the process, KB", environment_kilobytes(env, ENVIRONMENTS), None, 20),
        _beside("a process that played, MB without shared files", in_fresh_process(_played, choice), "memory"),
        Figure("opening what was built, ms", opening),
    ]
    kind = "generated" if choice["data"] == "generated" else "real"
    subject = (
        f"{len(env.catalog):,} {kind} products, {len(env.goals):,} synthetic goals, observations as text; walks draw a "
        f"task every {EPISODE} steps and search for words of its goal. Upstream's figures are recorded ones, measured "
        "on another day and machine (it needs Java and gym 0.24), not in this run."
    )
    return Bench(subject, figures, kind == "generated")


def _beside(name: str, ours: float, key: str, goal: float | None = None, *, more: bool = False) -> Figure:
    return Figure(name, ours, UPSTREAM[key], goal, more, recorded=True)


def _choice(named: str | None) -> Choice:
    """Falls back to generated products where there are no others."""
    try:
        open_catalog(named)
    except MissingDataError:
        if named:
            raise
        return {"data": "generated", "generator": {"size": PRODUCTS}}
    return {"data": named}


def _search(env: WebShopEnv) -> float:
    """Searches for the goals as they stand, which agents often do; not remembered from before."""
    rng = random.Random(0)
    texts = [env.goals.goal(rng.randrange(len(env.goals))).instruction.lower() for _ in range(SEARCHES)]
    return statistics.median(1e3 * seconds_of(partial(env.catalog.search, text)) for text in texts)


def _played(choice: Choice) -> float:
    """What a process that plays a while holds for itself."""
    walk(WebShopEnv(**choice), 20_000)
    return anonymous_megabytes()
