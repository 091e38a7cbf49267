"""WebShop in a browser: start, steps per second beside upstream's, two browsers at once, memory.

python -m benchmarks.bench_browser --data FOLDER --out benchmarks/records/bench_browser.json
python -m benchmarks.bench_browser speed --data FOLDER
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import re
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.measuring import measurement, options_parser
from skillc_gym.envs.webshop import WebShopEnv
from skillc_gym.envs.webshop.browser import WebShopBrowserEnv
from skillc_gym.version import __version__

KINDS = ("Python", "driver", "browser", "renderer", "network", "other")
"""Kinds of processes; Python is this one, with the site."""
_TYPE = re.compile(r"--type=(\S+)")


def group_members(group: int) -> list[int]:
    """Returns the processes of a process group."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if os.getpgid(int(place.name)) == group:
                found.append(int(place.name))
        except ProcessLookupError:
            continue
    return found


def processor_seconds(group: int) -> dict[str, float]:
    """Returns the processor time used so far by kind of process; unlike steps per second, it hardly depends on others.

    Args:
        group: The process group of a driver and its browser.
    """
    seconds = dict.fromkeys(KINDS, 0.0) | {"Python": time.process_time()}
    for process in group_members(group):
        try:
            fields = Path(f"/proc/{process}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
            seconds[_kind(process, group)] += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        except OSError:
            continue
    return seconds


def _kind(process: int, group: int) -> str:
    line = Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    if process == group:
        return "driver"
    if "NetworkService" in line:
        return "network"
    found = _TYPE.search(line)
    return "browser" if found is None else "renderer" if found[1] == "renderer" else "other"


def megabytes(processes: list[int]) -> float:
    """Returns the memory that belongs to processes alone; what other browsers on the machine share does not count."""
    total = 0
    for process in processes:
        try:
            lines = Path(f"/proc/{process}/smaps_rollup").read_text("ascii").splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Private_Dirty:"))
    return total / 1024


UPSTREAM = 4.1
"""Steps per second of upstream's own Selenium loop, random clicks, Chromium 156, a machine of two cores."""
GOALS = {"served": 8.0, "swap": 30.0}
START_SECONDS, TWO_BROWSERS = 3.0, 1.5
_EPISODE = 15
_LENGTHS = {"served": 1, "swap": 4}
"""How long walks of two browsers are, so that they take seconds over either transport."""


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Measures the chosen parts."""
    parts: dict[str, Callable[[argparse.Namespace], list[dict[str, Any]]]] = {
        "start": _start,
        "speed": _speed,
        "two": _two_browsers,
        "memory": _memory,
    }
    rows = [row for name, part in parts.items() if not options.parts or name in options.parts for row in part(options)]
    return {
        "command": "python -m benchmarks.bench_browser " + " ".join(sys.argv[1:]),
        "skillc-gym": __version__,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "load_average": [round(load, 1) for load in os.getloadavg()],
        "rows": rows,
    }


def _row(name: str, value: float, unit: str, goal: float | None = None, *, most: bool = False) -> dict[str, Any]:
    met = goal is None or (value <= goal if most else value >= goal)
    wanted = "" if goal is None else f"{'at most' if most else 'at least'} {goal:g}"
    return {"what": name, "value": value, "unit": unit, "goal": wanted, "met": met}


def _start(options: argparse.Namespace) -> list[dict[str, Any]]:
    """From making the environment to the first page; the catalogue is built already."""
    WebShopEnv(data=options.data)
    seconds = []
    for _ in range(options.repeats):
        started = time.perf_counter()
        env = WebShopBrowserEnv(data=options.data)
        env.reset(seed=0)
        seconds.append(time.perf_counter() - started)
        env.close()
    name = f"start to the first page, median of {options.repeats}"
    return [_row(name, statistics.median(seconds), "s", START_SECONDS, most=True)]


def walk(env: WebShopEnv | WebShopBrowserEnv, steps: int, seed: int) -> list[float]:
    """Clicks at random; returns the seconds of every step, resets not counted."""
    rng, seconds = random.Random(seed), []
    _, info = env.reset(seed=seed)
    for number in range(1, steps + 1):
        action = rng.choice(info["available_actions"]).replace("<query>", " ".join(info["goal"].split()[:6]))
        started = time.perf_counter()
        *_, bought, _, info = env.step(action)
        seconds.append(time.perf_counter() - started)
        if bought or number % _EPISODE == 0:
            _, info = env.reset()
    return seconds


def _speed(options: argparse.Namespace) -> list[dict[str, Any]]:
    rows = []
    for transport, goal in GOALS.items():
        env = WebShopBrowserEnv(data=options.data, transport=transport)
        walk(env, 30, 1)
        best: list[float] = []
        before = processor_seconds(env.process_group or 0)
        for repeat in range(options.repeats):
            seconds = walk(env, options.steps, repeat)
            best = min(best or seconds, seconds, key=sum)
        after = processor_seconds(env.process_group or 0)
        env.close()
        rows.append(
            _row(f"{transport}, one browser, best of {options.repeats}", len(best) / sum(best), "steps/s", goal)
        )
        rows.append(_row(f"{transport}, median step", 1e3 * statistics.median(best), "ms"))
        rows.append(_row(f"{transport}, 95th percentile", 1e3 * sorted(best)[int(0.95 * len(best))], "ms"))
        each = {kind: 1e3 * (after[kind] - before[kind]) / (options.repeats * options.steps) for kind in KINDS}
        rows.append(_row(f"{transport}, processor time of a step, resets included", sum(each.values()), "ms"))
        rows += [_row(f"{transport}, of that {kind}", value, "ms") for kind, value in each.items()]
        rows.append(_row(f"{transport}, times upstream's {UPSTREAM} steps/s", len(best) / sum(best) / UPSTREAM, "x"))
    return rows


def _two_browsers(options: argparse.Namespace) -> list[dict[str, Any]]:
    """The same walks one after the other in one browser, and at once in two."""
    rows = []
    for transport in GOALS:
        envs = [WebShopBrowserEnv(data=options.data, transport=transport) for _ in range(2)]
        for env in envs:
            walk(env, 15, 9)
        ratios, steps = [], options.steps * _LENGTHS[transport]
        for repeat in range(options.repeats):
            started = time.perf_counter()
            for _ in range(2):
                walk(envs[0], steps, repeat)
            middle = time.perf_counter()
            with ThreadPoolExecutor(2) as threads:
                list(threads.map(lambda env, steps=steps, seed=repeat: walk(env, steps, seed), envs))
            ratios.append((middle - started) / (time.perf_counter() - middle))
        for env in envs:
            env.close()
        rows.append(
            _row(f"{transport}, two browsers beside one, best of {options.repeats}", max(ratios), "x", TWO_BROWSERS)
        )
    return rows


def _memory(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Episodes in one process: the most memory that Python and the browser's processes had in every tenth of them.

    The text environment plays the same episodes before, and fills the shop's caches, which all environments of a
    process share and which are bounded: what grows afterwards belongs to the browser's environment.
    """
    text, _ = _peaks(WebShopEnv(data=options.data), options.episodes)
    rows = _memory_rows("text environment before, Python", text, None, options.episodes)
    for transport in GOALS:
        env = WebShopBrowserEnv(data=options.data, transport=transport)
        python, browser = _peaks(env, options.episodes)
        env.close()
        rows += _memory_rows(f"{transport}, Python", python, 1.05, options.episodes)
        rows += _memory_rows(f"{transport}, browser", browser, 1.25, options.episodes)
    return rows


def _peaks(env: WebShopEnv | WebShopBrowserEnv, episodes: int) -> tuple[list[float], list[float]]:
    """The most memory in every tenth, of this process and of the environment's browser."""
    python, browser = [0.0] * 10, [0.0] * 10
    for number in range(episodes):
        walk(env, 4, number)
        tenth = 10 * number // episodes
        python[tenth] = max(python[tenth], megabytes([os.getpid()]))
        group = env.process_group if isinstance(env, WebShopBrowserEnv) else None
        browser[tenth] = max(browser[tenth], megabytes(group_members(group)) if group else 0.0)
    return python, browser


def _memory_rows(name: str, peaks: Sequence[float], growth: float | None, episodes: int) -> list[dict[str, Any]]:
    """Rows of the memory in tenths of the episodes; it may grow by so much between the second and the last."""
    most = None if growth is None else peaks[1] * growth
    return [
        _row(f"{name}, most in the first {episodes // 10:,} episodes", peaks[0], "MB"),
        _row(f"{name}, most in a tenth up to {episodes // 2:,}", peaks[4], "MB"),
        _row(f"{name}, most in a tenth up to {episodes:,}", peaks[-1], "MB", most, most=True),
    ]


def main(words: Sequence[str] | None = None) -> int:
    """Measures; returns 1 where a goal is missed."""
    parser = options_parser(__doc__)
    parser.add_argument("parts", nargs="*", choices=["start", "speed", "two", "memory", []])
    parser.add_argument("--data", default=None, help="WebShop products (default: WEBSHOP_DATA)")
    parser.add_argument("--steps", type=int, default=150, help="steps of a walk")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--episodes", type=int, default=1_000, help="episodes for memory")
    return measurement(parser, measure, words, failed=lambda record: not all(row["met"] for row in record["rows"]))


if __name__ == "__main__":
    sys.exit(main())
