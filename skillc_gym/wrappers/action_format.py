"""ActionFormat: from a model's reply to the command that the environment executes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import gymnasium
from gymnasium.utils import RecordConstructorArgs

from skillc_gym.errors import ConfigError
from skillc_gym.spaces import Unicode, require_text, text_space
from skillc_gym.values import require_switch, require_whole
from skillc_gym.wrappers.skill_injection import has_prompt

REPLY_LENGTH = 65_536
"""Longest reply in characters that the action space promises to take."""

_TAG = re.compile(r"</?(?:think|action)>")
_CHINESE = re.compile("[\u4e00-\u9fff]")
_WITH_THINK = ["<think>", "</think>", "<action>", "</action>"]


@dataclass(frozen=True)
class ParsedReply:
    """What a reply says: the command to execute, stripped ("" if there is none), and whether it keeps the format."""

    command: str
    format_valid: bool


def format_reply(command: str, thought: str = "") -> str:
    """Writes a reply in the format: ``<think>thought</think><action>command</action>``."""
    return f"<think>{thought}</think><action>{command}</action>"


def with_thoughts(said: str, thoughts: str | None) -> str:
    """A reply in one text, of what servers that parse thoughts give apart."""
    return said if not thoughts or "<think>" in said else f"<think>{thoughts}</think>{said}"


def parse_reply(reply: str, *, require_think: bool = True) -> ParsedReply:
    """Finds the command in a reply, and judges the reply's form.

    The form is valid if the reply is one ``<think>...</think>`` and then one ``<action>...</action>`` with a command in
    it, white space aside and nothing else around (without ``require_think`` the thought may be missing).

    The command is looked for even in a malformed reply; where something stands behind the end of the thought
    (``</think>``), only there: the first closed ``<action>`` pair; else what follows an unclosed ``<action>`` (a reply
    cut off by its stop string); else, if no thought is left open, the last line that is not empty.
    """
    tags = _TAG.findall(reply)
    command = _command(reply)
    form = tags == _WITH_THINK or (not require_think and tags == _WITH_THINK[2:])
    outside = re.sub(r"<(think|action)>.*?</\1>", "", reply, flags=re.DOTALL) if form else reply
    return ParsedReply(command, form and not outside.strip() and bool(command))


def parse_tail_reply(reply: str, tail: int) -> ParsedReply:
    """Reads a reply as verl-agent does: all in lower case.

    The command is what stands between the first ``<action>`` and the first ``</action>``; where one is missing, the
    last ``tail`` characters, and the form is invalid. It is also without ``<think>`` and ``</think>``, or with a
    Chinese character; their order does not matter.
    """
    lower = reply.lower()
    begin, end = lower.find("<action>"), lower.find("</action>")
    if begin < 0 or end < 0:
        return ParsedReply(lower[-tail:], False)
    thought = "<think>" in reply and "</think>" in reply
    return ParsedReply(lower[begin + len("<action>") : end].strip(), thought and not _CHINESE.search(reply))


def _command(reply: str) -> str:
    rest = reply.rpartition("</think>")[2]
    closed = _closed(rest)
    if closed is None and not rest.strip():
        closed = _closed(reply)
    if closed is not None:
        return _TAG.sub(" ", closed).strip()
    if "<action>" in rest:
        return _TAG.sub(" ", rest.partition("<action>")[2]).strip()
    if "<think>" in rest:  # left open
        return ""
    lines = [line.strip() for line in _TAG.sub("\n", rest).splitlines()]
    return next((line for line in reversed(lines) if line), "")


def _closed(text: str) -> str | None:
    # str.find, because a regular expression takes quadratic time on a reply that repeats an opening tag.
    begin = text.find("<action>")
    end = text.find("</action>", begin)
    return None if begin < 0 or end < 0 else text[begin + len("<action>") : end]


class ActionFormat(gymnasium.Wrapper[str, str, str, str], RecordConstructorArgs):
    """Takes a model's whole reply as the action and executes the command in it.

    No reply is ever an error: one without a usable command executes what :func:`parse_reply` makes of it, and the
    environment answers that nothing came of it. ``info`` gains ``format_valid`` (bool; the reply's form) and
    ``executed_action`` (str). ``action_valid`` stays the environment's verdict on whether the command was possible:
    the two are different things. At reset they are True and "".

    Args:
        env: A text environment that takes commands.
        require_think: Whether a reply without a thought has an invalid form.
        tail: Read replies as :func:`parse_tail_reply` does, with so many last characters; 0 for the rules above.

    Examples:
        >>> parse_reply("<think>It may be there.</think><action>go to desk 1</action>")
        ParsedReply(command='go to desk 1', format_valid=True)
        >>> parse_reply("go to desk 1")
        ParsedReply(command='go to desk 1', format_valid=False)
    """

    def __init__(self, env: gymnasium.Env[str, str], require_think: bool = True, tail: int = 0) -> None:
        require_whole("tail", tail, 0)
        require_think = require_switch("require_think", require_think)
        RecordConstructorArgs.__init__(self, require_think=require_think, tail=tail)
        gymnasium.Wrapper.__init__(self, env)
        if has_prompt(env):
            raise ConfigError("ActionFormat stands around a ChatPrompt, whose chat would hold commands, and no replies")
        self.require_think, self.tail = require_think, tail
        self._longest = text_space(env, "action_space", "ActionFormat").max_length
        self.action_space = Unicode(max(REPLY_LENGTH, self._longest))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Starts an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        return observation, {**info, "format_valid": True, "executed_action": ""}

    def step(self, action: str) -> tuple[str, Any, bool, bool, dict[str, Any]]:
        """Executes the command in a reply; one longer than the environment's action space is cut to fit."""
        reply = require_text(action)
        parsed = (
            parse_tail_reply(reply, self.tail) if self.tail else parse_reply(reply, require_think=self.require_think)
        )
        command = parsed.command[: self._longest]
        observation, reward, terminated, truncated, info = self.env.step(command)
        form = {"format_valid": parsed.format_valid, "executed_action": command}
        return observation, reward, terminated, truncated, {**info, **form}
