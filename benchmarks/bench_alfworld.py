"""The ALFWorld part of the benchmark: steps, resets, loading and memory, beside upstream in the same run."""

from __future__ import annotations

import argparse
import gc
import random
import statistics
import time
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium

from benchmarks.measuring import Bench, Figure, in_fresh_process, seconds_of
from skillc_gym import ALFWORLD_ID
from skillc_gym.envs.alfworld import ALFWorldEnv, ALFWorldVectorEnv
from skillc_gym.envs.alfworld.data import GENERATED, GameSet, data_path, open_games
from skillc_gym.envs.alfworld.engine import Game, UpstreamProcess, UpstreamWorld, World
from skillc_gym.envs.alfworld.experts import Planner
from skillc_gym.errors import MissingDataError, MissingExtraError

EPISODE = 50
ENVIRONMENTS, GAMES, VECTOR = 1024, 128, 10_000
MEASURED = 2000
"""Environments over which the memory of one is averaged."""
UPSTREAM_GAMES, UPSTREAM_STEPS = 3, 15

Choice = dict[str, Any]
"""Which games: the keyword arguments data and split."""


def measure(options: argparse.Namespace) -> Bench:
    """Measures the native engine, and upstream where it is installed."""
    choice: Choice = {"data": _data(options.data), "split": options.split}
    opening = seconds_of(lambda: open_games(**choice))
    games = open_games(**choice)
    loads = [1e3 * seconds_of(partial(games.load, name)) for name in games.task_ids[:GAMES]]
    steps = 20_000 if options.quick else 200_000
    rate, resets = _rates(ALFWorldEnv(**choice), steps)
    made_rate, _ = _rates(gymnasium.make(ALFWORLD_ID, **choice), steps)
    upstream = {} if options.no_upstream else _upstream(games)
    played, each = partial(in_fresh_process, _play_many, choice), partial(in_fresh_process, kilobytes_each, choice)
    figures = [
        Figure("steps/s on one core, admissible commands included", rate, upstream.get("rate"), 20_000, True),
        Figure("the same walks again through gymnasium.make, steps/s", made_rate),
        Figure("the state machine alone, commands not read, steps/s", _bare_rate(games, steps), None, 150_000, True),
        Figure(f"{VECTOR:,} environments stepped together, steps/s", _vector_rate(choice, options.quick)),
        Figure("shortest plan from the start, ms (median)", statistics.median(_plan_times(games))),
        Figure("reset of a loaded game, ms (median)", statistics.median(resets), upstream.get("reset"), 0.2),
        Figure("first load of a game, ms (median)", statistics.median(loads), upstream.get("load"), 20),
        Figure("first load of a game, ms (slowest)", max(loads), None, 20),
        Figure(f"{ENVIRONMENTS:,} environments over {GAMES} games, MB", played(ENVIRONMENTS, GAMES), None, 400),
        Figure(f"an environment beyond its task, KB ({MEASURED:,} of one task)", each(1), None, 30),
        Figure(f"the same over {GAMES} tasks, what the tasks remember included", each(GAMES), None, 30),
        Figure("a process with one game, MB", played(1, 1), upstream.get("memory")),
        Figure("opening the games, s", opening),
    ]
    kind = "generated" if choice["data"] == GENERATED else "real"
    subject = f"{len(games.task_ids)} {kind} games of {options.split}; upstream on {UPSTREAM_GAMES} of them."
    return Bench(subject, figures, kind == "generated")


def _data(named: str | None) -> str | None:
    """Falls back to generated games where there are no others."""
    try:
        data_path(named)
    except MissingDataError:
        return GENERATED
    return named


def _rates(env: gymnasium.Env[str, str], steps: int) -> tuple[float, list[float]]:
    """Plays random admissible commands; returns steps per second and each reset's milliseconds."""
    rng = random.Random(0)
    task_ids = env.unwrapped.task_ids  # type: ignore[attr-defined]
    done, stepping = 0, 0.0
    resets: list[float] = []
    while done < steps:
        task_id = task_ids[len(resets) % min(len(task_ids), 200)]
        started = time.perf_counter()
        _, info = env.reset(seed=0, options={"task_id": task_id})
        ready = time.perf_counter()
        for _ in range(EPISODE):
            commands = info["admissible_commands"]
            _, _, won, cut, info = env.step(commands[int(rng.random() * len(commands))])
            done += 1
            if won or cut:
                break
        stepping += time.perf_counter() - ready
        resets.append(1e3 * (ready - started))
    first_round = min(len(task_ids), 200, len(resets) // 2)
    return done / stepping, resets[first_round:]


def _bare_rate(games: GameSet, steps: int) -> float:
    """Steps per second of the state machine along fixed random walks, where nobody looks at the admissible commands."""
    walks = []
    for number, task_id in enumerate(games.task_ids[:50]):
        rng, world, walk = random.Random(number), World(games.load(task_id)), []
        for _ in range(EPISODE):
            walk.append(world.admissible[int(rng.random() * len(world.admissible))])
            world.step(walk[-1])
        walks.append((world, walk))
    done, stepping = 0, 0.0
    while done < steps:
        for world, walk in walks:
            world.reset()
            started = time.perf_counter()
            for command in walk:
                world.step(command)
            stepping += time.perf_counter() - started
            done += EPISODE
    return done / stepping


def _vector_rate(choice: Choice, quick: bool) -> float:
    """Steps per second of many environments in one vector, the choice of commands left out."""
    rng, stepping, rounds = random.Random(0), 0.0, 3 if quick else 20
    envs = ALFWorldVectorEnv(VECTOR, max_episode_steps=EPISODE, **choice)
    _, infos = envs.reset(seed=0)
    for _ in range(rounds):
        actions = [commands[int(rng.random() * len(commands))] for commands in infos["admissible_commands"]]
        started = time.perf_counter()
        *_, infos = envs.step(actions)
        stepping += time.perf_counter() - started
    return VECTOR * rounds / stepping


def _plan_times(games: GameSet) -> list[float]:
    loaded = [games.load(task_id) for task_id in games.task_ids[:GAMES]]
    return [1e3 * seconds_of(partial(_plan, game)) for game in loaded]


def _plan(game: Game) -> object:
    return Planner(game).plan()


def _upstream(games: GameSet) -> dict[str, float]:
    """Measures upstream's engine on a few games; empty where it is not installed."""
    try:
        process = UpstreamProcess()
    except MissingExtraError:
        return {}
    stride = max(1, len(games.task_ids) // UPSTREAM_GAMES)
    loads, resets, steps = [], [], []
    memory = 0.0
    for task_id in games.task_ids[::stride][:UPSTREAM_GAMES]:
        raw = games.raw(task_id)
        started = time.perf_counter()
        world = UpstreamWorld(process, raw)
        loads.append(1e3 * (time.perf_counter() - started))
        resets.append(1e3 * seconds_of(world.reset))
        memory = memory or resident_megabytes(str(process.pid))
        for number in range(UPSTREAM_STEPS):
            command = world.admissible[number * 7 % len(world.admissible)]
            steps.append(seconds_of(partial(world.step, command)))
    process.close()
    # The first load also starts the process, so the last one is the fairer figure.
    return {"rate": 1 / statistics.mean(steps), "reset": statistics.median(resets), "load": loads[-1], "memory": memory}


def _play_many(choice: Choice, environments: int, games: int) -> float:
    """Returns this process's resident megabytes once so many environments have played a while."""
    rng = random.Random(0)
    envs = [ALFWorldEnv(**choice) for _ in range(environments)]
    for index, env in enumerate(envs):
        _play_episode(env, env.task_ids[index % min(games, len(env.task_ids))], rng)
    return resident_megabytes("self")


def kilobytes_each(choice: Choice, games: int) -> float:
    """Returns what an environment adds to this process once its task is there: resident kilobytes, on average.

    Each has played for as long as an episode lasts, and so has one before them on every task.
    """
    rng = random.Random(0)
    task_ids = ALFWorldEnv(**choice).task_ids[:games]
    for task_id in task_ids:
        _play_episode(ALFWorldEnv(**choice), task_id, rng)
    gc.collect()
    before = resident_megabytes("self")
    envs = [ALFWorldEnv(**choice) for _ in range(MEASURED)]
    for index, env in enumerate(envs):
        _play_episode(env, task_ids[index % len(task_ids)], rng)
    gc.collect()
    return 1e3 * (resident_megabytes("self") - before) / MEASURED


def _play_episode(env: ALFWorldEnv, task_id: str, rng: random.Random) -> None:
    _, info = env.reset(seed=0, options={"task_id": task_id})
    for _ in range(EPISODE):
        commands = info["admissible_commands"]
        info = env.step(commands[int(rng.random() * len(commands))])[4]


def resident_megabytes(process: str) -> float:
    """Returns the resident memory of a process, from /proc; nan where there is none."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return float("nan")
    return pages * 4096 / 1e6
