"""Plays verl-agent's vector of ALFWorld, theirs or ours, by one plan, and writes down every answer and what it cost.

    python benchmarks/parity/verl_agent.py theirs|ours CHECKOUT DATA GROUPS MEMBERS STEPS OUT

A script for a process of its own: "theirs" runs in an environment with Ray and TextWorld, where nothing of ours is
installed. Both sides choose commands by the same rule from what they are answered, so that equal answers lead to equal
commands. Their list of games follows the file system: it is sorted here, as ours is.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import sys
import time
from pathlib import Path
from typing import Any

CONFIG = "agent_system/environments/env_package/alfworld/configs/config_tw.yaml"
SEED = 0
ODD = ("", " look ", "LOOK", "go to nowhere 1", "help", "take", "inventory ", "examine", "go to  desk 1", "a" * 300)


def main(side: str, checkout: str, data: str, *numbers: str) -> None:
    """Builds the vector, plays two resets of it, and writes the answers' file and the costs' file beside it."""
    groups, members, steps = map(int, numbers[:-1])
    out = numbers[-1]
    os.environ["ALFWORLD_DATA"] = data
    began = time.perf_counter()
    envs = theirs(checkout, groups, members) if side == "theirs" else ours(checkout, groups, members)
    costs: dict[str, float] = {}
    with Path(out).open("w", encoding="utf-8") as file:
        for reset in range(2):
            answers = envs.reset()
            costs.setdefault("start_seconds", time.perf_counter() - began)
            write(file, answers, envs)
            spent = play(envs, answers[-1], steps, reset, file)
            costs.setdefault("steps_per_second", groups * members * steps / spent)
    costs["megabytes"] = megabytes()
    Path(out).with_suffix(".costs.json").write_text(json.dumps(costs), encoding="utf-8")
    envs.close()


def theirs(checkout: str, groups: int, members: int) -> Any:
    """The checkout's own vector, a Ray actor per member."""
    walk = os.walk

    def in_order(top: Any, *given: Any, **named: Any) -> Any:
        return iter(sorted(walk(top, *given, **named), key=lambda entry: Path(entry[0]).parts))

    os.walk = in_order
    sys.path.insert(0, checkout)
    vectors = importlib.import_module("agent_system.environments.env_package.alfworld.envs")
    # As many actors as memory has room for: how many share a core is their users' choice.
    return vectors.build_alfworld_envs(str(Path(checkout) / CONFIG), SEED, groups, members, {"num_cpus": 0.001})


def ours(checkout: str, groups: int, members: int) -> Any:
    """Ours, in one process."""
    import skillc_gym  # noqa: F401 - registers the environments
    from skillc_gym.adapters.verl_agent import build_alfworld_envs

    return build_alfworld_envs(str(Path(checkout) / CONFIG), SEED, groups, members, {"num_cpus": 0.001})


def play(envs: Any, infos: list[dict[str, Any]], steps: int, reset: int, file: Any) -> float:
    """Steps every member; returns the seconds that the vector took. Even members follow their game's walkthrough."""
    draws = [random.Random(f"{reset}:{member}") for member in range(len(infos))]
    plans = [walkthrough(info) if member % 2 == 0 else [] for member, info in enumerate(infos)]
    spent = 0.0
    for step in range(steps):
        offered = envs.get_admissible_commands
        chosen = [
            plan[step] if step < len(plan) else draw.choice(ODD) if draw.random() < 0.1 else draw.choice(commands)
            for plan, draw, commands in zip(plans, draws, offered, strict=True)
        ]
        began = time.perf_counter()
        answers = envs.step(chosen)
        spent += time.perf_counter() - began
        write(file, answers, envs)
    return spent


def walkthrough(info: dict[str, Any]) -> list[str]:
    """Commands that win a game, from its file."""
    plan: list[str] = json.loads(Path(info["extra.gamefile"]).read_text(encoding="utf-8"))["walkthrough"]
    return plan


def write(file: Any, answers: Any, envs: Any) -> None:
    """Writes an answer of the vector, a line per member."""
    names = ("won", "admissible_commands", "extra.gamefile", "observation_text")
    columns = [part for part in answers if part is not None]
    for member, (*plain, info) in enumerate(zip(*columns, strict=True)):
        told = {name: info[name] for name in names}
        row = {"member": member, "answer": plain, "info": told, "offered": envs.get_admissible_commands[member]}
        file.write(json.dumps(row) + "\n")


def megabytes() -> float:
    """Memory of this process and of all that descend from it, shared pages counted once (proportional set size)."""
    parents = {pid: parent_of(pid) for pid in map(int, filter(str.isdigit, os.listdir("/proc")))}  # noqa: PTH208 - names
    family = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    return sum(map(kilobytes_of, family)) / 1e3


def parent_of(pid: int) -> int:
    """A process's parent; 0 if it has ended."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])
    except OSError:
        return 0


def kilobytes_of(pid: int) -> int:
    """A process's proportional set size; 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines()
        return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)
    except OSError:
        return 0


if __name__ == "__main__":
    main(*sys.argv[1:])
