"""Writes demonstrations of an expert as JSON lines: ``python -m scripts.make_demonstrations --out demos.jsonl``.

Each line has the columns ``task_id``, ``task_type``, ``condition`` (1: the skill was in the prompt), ``won`` and
``messages`` (a chat, as chat templates and ``datasets.load_dataset("json", ...)`` take it).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import gymnasium

import skillc_gym  # noqa: F401 - registers the environments
from skillc_gym.chat import ChatFormat
from skillc_gym.envs.alfworld.experts.explorer import Explorer
from skillc_gym.envs.alfworld.experts.planner import shortest_plan
from skillc_gym.errors import ConfigError, SkillCError
from skillc_gym.wrappers import ActionFormat, ChatPrompt, SkillInjection, format_reply

Expert = Callable[[dict[str, Any]], str]
"""Gives a reply, thought and command, from an info."""
CONDITIONS = {"on": (True,), "off": (False,), "both": (True, False)}


def explorer(env: gymnasium.Env[str, str], info: dict[str, Any], seed: int) -> Expert:
    """An expert that knows what it has read and searches as a person would."""
    one = Explorer(info["task_type"], info["goal"], seed=seed)

    def reply(info: dict[str, Any]) -> str:
        command = one.act(info["observation"], info["admissible_commands"])
        return format_reply(command, thought=one.thought)

    return reply


def planner(env: gymnasium.Env[str, str], info: dict[str, Any], seed: int) -> Expert:
    """An expert that knows where everything is and takes the shortest way."""

    def reply(info: dict[str, Any]) -> str:
        plan = shortest_plan(env)
        return format_reply(plan[0] if plan else "look", thought=f"{len(plan)} steps to go")

    return reply


EXPERTS = {"explorer": explorer, "planner": planner}


def demonstration(env: gymnasium.Env[str, str], expert: str, task_id: str, skill: bool, seed: int) -> dict[str, Any]:
    """Plays one task; returns its line."""
    _, info = env.reset(seed=seed, options={"task_id": task_id, "skill": skill})
    act, over = EXPERTS[expert](env, info, seed), False
    while not over:
        *_, terminated, truncated, info = env.step(act(info))
        over = terminated or truncated
    messages = info["messages"] if info["messages"][-1]["role"] == "assistant" else info["messages"][:-1]
    return {
        "task_id": task_id,
        "task_type": info["task_type"],
        "condition": int(skill),
        "won": bool(info["won"]),
        "messages": messages,
    }


def demonstrations(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Plays the split's tasks in order, each in every condition that was asked for.

    Raises:
        SkillCError: For missing data and unknown names.
    """
    make = {"data": args.data, "split": args.split, "task_types": args.task_types}
    env: Any = gymnasium.make("skillc/ALFWorld-v0", max_episode_steps=args.max_steps, **make)
    chat = ChatFormat.compact() if args.chat == "compact" else ChatFormat.default()
    env = ChatPrompt(ActionFormat(SkillInjection(env, library="alfworld", where="info")), chat)
    for index, task_id in enumerate(env.unwrapped.task_ids[: args.count]):
        for skill in CONDITIONS[args.skills]:
            yield demonstration(env, args.expert, task_id, skill, args.seed + index)


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="file to write")
    parser.add_argument("--data", default="generated", help="'generated' (default), or a folder or archive of games")
    parser.add_argument("--split", default="train", help="default: train")
    parser.add_argument("--task-types", nargs="+", help="only these types")
    parser.add_argument("--count", type=int, help="only the first so many tasks")
    parser.add_argument("--expert", choices=sorted(EXPERTS), default="explorer", help="default: explorer")
    parser.add_argument("--skills", choices=sorted(CONDITIONS), default="both", help="default: both")
    parser.add_argument("--chat", choices=["default", "compact"], default="default", help="wording of the prompt")
    parser.add_argument("--max-steps", type=int, default=50, help="default: 50")
    parser.add_argument("--seed", type=int, default=0, help="seed of the explorer's search")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    args = _arguments(argv)
    written = won = 0
    try:
        if args.out.exists():
            raise ConfigError(f"{args.out} exists; name another file, or remove it first.")
        args.out.parent.mkdir(parents=True, exist_ok=True)
        partial = args.out.with_name(args.out.name + ".partial")
        with partial.open("w", encoding="utf-8") as file:
            for line in demonstrations(args):
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
                written, won = written + 1, won + line["won"]
        partial.rename(args.out)
    except SkillCError as error:
        print(f"make_demonstrations: {error}", file=sys.stderr)
        return 2
    print(f"{written} demonstrations in {args.out}, {won} of them won", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
