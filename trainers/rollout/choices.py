"""The possible commands as replies, for engines that choose instead of generating."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from trainers.engines.types import ChoosingEngine, Engine
from trainers.rollout.chat_tokens import ChatTokens

__all__ = ["choices", "possible_commands"]

_FREE = re.compile(r"<\w+>")


def choices(engine: Engine, chat: ChatTokens, info: Mapping[str, Any]) -> tuple[tuple[int, ...], ...]:
    """The tokens of every reply that gives a possible command; none for an engine that generates."""
    if not isinstance(engine, ChoosingEngine):
        return ()
    return tuple(tuple(chat.reply_ids(engine.worded(command))) for command in possible_commands(info))


def possible_commands(info: Mapping[str, Any]) -> list[str]:
    """The listed commands; where one leaves words to the agent (``search[<query>]``), the goal's stand in."""
    goal = str(info.get("goal", ""))
    listed = info.get("admissible_commands") or ()
    return list(dict.fromkeys(_FREE.sub(lambda _: goal, command) for command in listed))
