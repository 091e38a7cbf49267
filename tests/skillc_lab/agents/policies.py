"""Scripted policies in words, for two worlds, which do well only when they are told something."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from skillc_gym.wrappers import format_reply
from tests.skillc_gym.adapters.scripted import GENERATOR, expert_command
from trainers.config import TrainConfig
from trainers.engines.text import FunctionEngine, TextReply, TextRequest

Messages = Sequence[Mapping[str, str]]

HOUSE = TrainConfig(
    model="scripted",
    data="generated",
    split="valid_unseen",
    task_types=("pick",),
    env_options={"generator": GENERATOR},
    max_episode_steps=20,
)
SHOP = TrainConfig(
    model="scripted",
    env="webshop",
    data="generated",
    split="test",
    env_options={"generator": {"seed": 0, "size": 1000}},
    max_episode_steps=4,
)


def house(*helps: str) -> Callable[[Messages], str]:
    """Plays as an expert where the system message holds one of these, and looks for ever otherwise."""

    def reply(messages: Messages) -> str:
        if not any(text in messages[0]["content"] for text in helps):
            return format_reply("look")
        return format_reply(expert_command([{"role": "system", "content": "Skill:"}, *messages[1:]]))

    return reply


def shop(messages: Messages) -> str:
    """Searches for the instruction, opens the first product and buys it."""
    actions = re.split(r"(?<=\]), ", messages[-1]["content"].rpartition("Possible actions: ")[2])
    if "click[buy now]" in actions:
        return format_reply("click[buy now]")
    codes = [action for action in actions if re.fullmatch(r"click\[b[0-9a-z]{9}\]", action)]
    words = messages[1]["content"].partition("Instruction:")[2].split("\n")[0]
    return format_reply(codes[0] if codes else f"search[{' '.join(re.findall('[a-z]+', words)[:6])}]")


def engine(play: Callable[[Messages], str], write: Callable[[str], str] | None = None, **asked: list[Any]) -> Any:
    """An engine that plays by one function and writes by another, told apart by the system message.

    Args:
        play: From a chat to a reply.
        write: From a question to a reply; None if nothing is to be written.
        **asked: Lists ``questions`` and ``chats`` that take down what was asked.
    """

    async def ask(request: TextRequest) -> TextReply:
        if request.messages[0]["content"].startswith("You help an agent"):
            question = request.messages[1]["content"]
            asked.get("questions", []).append(question)
            assert write is not None
            return TextReply(write(question), 7, 3)
        asked.get("chats", []).append(request.messages)
        return TextReply(play(request.messages), 5, 2)

    return FunctionEngine(ask)
