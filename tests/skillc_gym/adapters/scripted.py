"""A scripted agent for every adapter: it reads a chat and answers as an expert would, if it sees a skill."""

import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from scripts.newcomer import lines_of
from skillc_gym.adapters import ChatEnv, EpisodeRequest, paired_requests
from skillc_gym.envs.alfworld.experts.explorer import Explorer

GENERATOR = {"games_per_type": 4, "size": "small"}
ENV_KWARGS = {"data": "generated", "task_types": "pick", "generator": GENERATOR, "max_episode_steps": 20}
MAKE = partial(ChatEnv, "alfworld", **ENV_KWARGS)
ROOT = Path(__file__).resolve().parents[3]
HUBS = ROOT / "scripts" / "hubs"
LOOK = "<action>look</action>"


def pairs(tasks: int = 1, **options: Any) -> list[EpisodeRequest]:
    """Pairs over the first tasks."""
    return paired_requests(MAKE().task_ids[:tasks], **options)


def expert_command(chat: Sequence[Mapping[str, Any]]) -> str:
    """The next command of an expert who has seen the chat; "look" for ever in a chat without a skill."""
    texts = [message["content"] for message in chat if message["role"] != "assistant"]
    if "Skill:" not in texts[0]:
        return "look"
    heard = [text.rpartition("\n\nPossible commands: ") for text in texts if "Possible commands: " in text]
    goal = heard[0][0].partition("Your task is to: ")[2]
    expert = Explorer("pick_and_place_simple", goal)
    return [expert.act(said, commands.split(", ")) for said, _, commands in heard][-1]


def expert_reply(chat: Sequence[Mapping[str, Any]]) -> str:
    """The same in the form of a reply."""
    return f"<think>I know.</think><action>{expert_command(chat)}</action>"


def check_record(record: Mapping[str, Any], request: EpisodeRequest) -> None:
    """What every record of a played pair tells: whose it is, and that the expert wins with the skill alone."""
    assert {name: record[name] for name in request.to_row()} == request.to_row()
    shown = bool(request.condition)
    assert bool(record["skill"]) == bool(record["skill_sha256"]) == bool(record["won"]) == shown
    assert (bool(record["terminated"]), bool(record["truncated"])) == (shown, not shown)


def blocks_of(page: str) -> list[str]:
    """A page's Python blocks."""
    text = (ROOT / "docs" / "adapters" / page).read_text(encoding="utf-8")
    return [line.text for line in lines_of(text) if line.python]


def run_blocks(page: str) -> dict[str, Any]:
    """Runs each of a page's Python blocks alone, as a reader would paste it; returns the names that they leave."""
    left: dict[str, Any] = {}
    for block in blocks_of(page):
        names: dict[str, Any] = {"__name__": page}
        exec(compile(block, page, "exec"), names)
        left |= names
    assert left
    return left


def wheel_of(hub: str, folder: Path) -> Path:
    """Builds the package for a hub in a folder of its own; returns where its wheel is unpacked."""
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", folder / "dist"]
    subprocess.run([*build, shutil.copytree(HUBS / hub, folder / "mine")], check=True)
    (wheel,) = (folder / "dist").glob("*.whl")
    zipfile.ZipFile(wheel).extractall(folder / "installed")
    return folder / "installed"
