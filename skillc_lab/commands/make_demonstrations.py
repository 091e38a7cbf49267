"""``skillc tools make-demonstrations``: write demonstrations of an expert as JSON lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import gymnasium

import skillc_gym  # noqa: F401 - registers the environments
from skillc_gym.chat import ChatFormat
from skillc_gym.envs.alfworld.experts import Explorer, shortest_plan
from skillc_gym.errors import ConfigError
from skillc_gym.files import replace_file
from skillc_gym.wrappers import ActionFormat, ChatPrompt, SkillInjection
from skillc_lab.agents.shown import expert_replies
from skillc_lab.cli.command import Command, complain
from trainers.tracking import json_line

CONDITIONS = {"on": (True,), "off": (False,), "both": (True, False)}


@dataclass(frozen=True)
class MakeDemonstrationsOptions:
    """Write demonstrations of an ALFWorld expert as JSON lines.

    Each line has the columns task_id, task_type, condition (1: the skill was in the prompt), won and messages (a chat,
    as chat templates and datasets.load_dataset("json", ...) take it).
    """

    out: Path
    """File to write."""
    data: str = "generated"
    """"generated", or a folder or archive of games."""
    split: str = "train"
    """Split of the tasks."""
    task_types: tuple[str, ...] | None = None
    """Only these types."""
    count: int | None = None
    """Only the first so many tasks."""
    expert: Literal["explorer", "planner"] = "explorer"
    """Who plays: one that searches as a person would, or one that knows where everything is."""
    skills: Literal["on", "off", "both"] = "both"
    """In which conditions each task is shown."""
    chat: Literal["default", "compact"] = "default"
    """Wording of the prompt."""
    max_steps: int = 50
    """Step limit of an episode."""
    seed: int = 0
    """Seed of the explorer's search."""


class Planner:
    """An expert that knows where everything is, and says how far it is from the end."""

    def __init__(self, env: gymnasium.Env[str, str]) -> None:
        self._env, self.thought = env, ""

    def act(self, observation: str, commands: Sequence[str]) -> str:
        """The next command of the shortest plan."""
        plan = shortest_plan(self._env)
        self.thought = f"{len(plan)} steps to go"
        return plan[0] if plan else "look"


def demonstrations(options: MakeDemonstrationsOptions) -> Iterator[dict[str, Any]]:
    """Plays the split's tasks in order, each in every condition that was asked for; a line each."""
    make: dict[str, Any] = {"data": options.data, "split": options.split, "task_types": options.task_types}
    env: Any = gymnasium.make("skillc/ALFWorld-v0", max_episode_steps=options.max_steps, **make)
    chat = ChatFormat.compact() if options.chat == "compact" else ChatFormat.default()
    env = ChatPrompt(ActionFormat(SkillInjection(env, library="alfworld", where="info")), chat)
    for index, task_id in enumerate(env.unwrapped.task_ids[: options.count]):
        for skill in CONDITIONS[options.skills]:
            _, info = begun = env.reset(seed=options.seed + index, options={"task_id": task_id, "skill": skill})
            explorer = Explorer(info["task_type"], info["goal"], seed=options.seed + index)
            for _, outcome in expert_replies(env, begun, explorer if options.expert == "explorer" else Planner(env)):
                info = outcome[4]
            told = info["messages"]
            named = {"task_id": task_id, "task_type": info["task_type"], "condition": int(skill)}
            messages = told if told[-1]["role"] == "assistant" else told[:-1]
            yield {**named, "won": bool(info["won"]), "messages": messages}


def make(options: MakeDemonstrationsOptions) -> int:
    """Runs the command."""
    if options.out.exists():
        raise ConfigError(f"{options.out} exists; name another file, or remove it first.")
    won: list[bool] = []

    def lines() -> Iterator[bytes]:
        for line in demonstrations(options):
            won.append(line["won"])
            yield json_line(line)

    replace_file(options.out, lines())
    complain(f"{len(won)} demonstrations in {options.out}, {sum(won)} of them won")
    return 0


COMMAND = Command(MakeDemonstrationsOptions, make, "interrupted; the file was not completed.")
