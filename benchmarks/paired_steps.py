"""What a step of one member costs in a PairedVectorEnv, beside the same step of a plain environment in the same run.

    python -m benchmarks.paired_steps --members 128

Both walk through the same games with the same commands. Somebody who reads the infos' columns pays for all members.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import gymnasium

from skillc_gym import ALFWORLD_ID, PairedVectorEnv

_GAMES: dict[str, Any] = {"data": "generated", "generator": {"games_per_type": 4}, "max_episode_steps": 1 << 40}
_CALLS = 2000


def measure(members: int, rounds: int) -> dict[str, float]:
    """Returns the microseconds of a step, by what is stepped; medians over rounds that take turns."""
    plain = gymnasium.make(ALFWORLD_ID, **_GAMES)
    groups = PairedVectorEnv(ALFWORLD_ID, members // 8, 8, **_GAMES)
    # A command that is always possible: the cheapest step there is, so the worst case for what surrounds it.
    command, last = "look", members - 1
    plain.reset(seed=0)
    groups.reset(seed=0)
    sides: dict[str, Callable[[], object]] = {
        "a plain environment": lambda: plain.step(command),
        f"one of {members} members": lambda: groups.advance([(last, command)]),
        f"one of {members} members, checked": lambda: groups.step({last: command}),
        f"one of {members} members, infos read": lambda: groups.step({last: command})[-1]["won"],
    }
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, step in sides.items():
            times[name].append(_microseconds(step, 20 if "read" in name else _CALLS))
    return {name: statistics.median(measured) for name, measured in times.items()}


def _microseconds(step: Callable[[], object], calls: int) -> float:
    begin = time.process_time()
    for _ in range(calls):
        step()
    return 1e6 * (time.process_time() - begin) / calls


def main(words: list[str] | None = None) -> int:
    """Measures and prints one line for each."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.paired_steps", description=__doc__)
    parser.add_argument("--members", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=30)
    options = parser.parse_args(words)
    found = measure(options.members, options.rounds)
    peer = next(iter(found.values()))
    for name, cost in found.items():
        sys.stdout.write(f"{name:<36} {cost:8.1f} us {cost / peer:6.2f} times\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
