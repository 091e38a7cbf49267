"""How observations become chat messages: pure functions over a format that a user can change in every piece."""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from typing import Any, Literal

from skillc_gym.errors import ConfigError, require_name
from skillc_gym.values import digits, require_switch, require_whole

__all__ = [
    "ChatFormat",
    "Message",
    "PastStep",
    "assistant",
    "conversation_turn",
    "first_turn",
    "system",
    "window_prompt",
]

Message = dict[str, str]
"""One chat message: ``{"role": "system" | "user" | "assistant", "content": text}``."""

_PLACEHOLDERS = {
    "skills": {"skills"},
    "first": {"observation", "goal", "commands"},
    "turn": {"observation", "goal", "step", "commands"},
    "commands": {"commands"},
    "command": {"command"},
    "window_turn": {"first", "goal", "history", "shown", "step", "next_step", "observation", "commands"},
    "past": {"observation", "action", "step"},
}


@dataclass(frozen=True)
class PastStep:
    """One step that lies behind the agent: what it saw and what it did then."""

    observation: str
    action: str


@dataclass(frozen=True)
class ChatFormat:
    """The wording of a prompt. Templates use ``str.format``; an empty piece leaves no trace.

    The system message is role, skills (with the skill switched on) and reply format, one empty line between two.

    Examples:
        >>> replace(ChatFormat.default(), role="You are a robot.").with_form("window:3").window
        3
    """

    role: str = "You are an agent in a house described in words. You fulfil the task by giving one command per turn."
    skills: str = "{skills}"
    """Around the skill text (``{skills}``); left out when the skill is off."""
    reply: str = (
        "In every turn first reason about what to do next, then give exactly one command:\n"
        "<think>your reasoning</think><action>your command</action>"
    )
    first: str = "{observation}"
    """First user message (``{observation}``, ``{goal}``; ``{commands}`` where the list stands within)."""
    turn: str = "{observation}"
    """Later user messages of the conversation form (``{observation}``, ``{goal}``, ``{step}``, ``{commands}``); "" for
    a wording of the window form alone, which writes every message as the first one where the window is 0."""
    show_admissible: bool = True
    """Whether every user message ends with the commands that are possible now."""
    commands: str = "Possible commands: {commands}"
    """How they are listed (``{commands}``)."""
    separator: str = ", "
    """What stands between two commands."""
    command: str = "{command}"
    """How each of them is written (``{command}``)."""
    listed_as: Mapping[str, Sequence[str]] = field(default_factory=dict, hash=False)
    """Commands that are listed under other names, under several, or (an empty list) not at all."""
    parts: str = ""
    """What parts an observation whose parts after the task are shown, each in quotes; "" shows all as it is."""
    form: Literal["conversation", "window"] = "conversation"
    """One growing chat, or each turn rendered afresh as system message and one user message."""
    window: int = 5
    """Window form: how many past steps a prompt shows."""
    window_turn: str = (
        "{first}\n\nSteps taken so far: {step}. The last {shown} of them:\n{history}\n\nWhat you see now: {observation}"
    )
    """Window form: later user messages (``{first}`` is the first observation; ``{history}``, ``{shown}``, ``{step}``,
    ``{next_step}``, ``{goal}``, ``{observation}``)."""
    past: str = "{step}. You saw: {observation}\nYour command: {action}"
    """Window form: one past step (``{step}`` counts from 1)."""
    above: str = "(the beginning, above)"
    """Window form: stands for the first observation in the history where ``{first}`` already shows it."""
    longest: int = 0
    """Window form: a later message of more characters is written as a first one, without history; 0 for no limit."""
    reply_tail: int = 0
    """How replies are read: 0 as :class:`~skillc_gym.wrappers.ActionFormat` says; else in lower case, and without tags
    so many last characters are the command."""

    def __post_init__(self) -> None:
        require_name("chat form", self.form, ("conversation", "window"))
        for piece in fields(self):
            _check_kind(piece.name, str(piece.type), getattr(self, piece.name))
        for name, known in _PLACEHOLDERS.items():
            _check_template(name, getattr(self, name), known)

    @classmethod
    def default(cls) -> ChatFormat:
        """For language models: instructions on the reply, possible commands in every turn."""
        return cls()

    @classmethod
    def compact(cls) -> ChatFormat:
        """For a tiny policy: no boilerplate, no lists of commands."""
        return cls(role="household agent", reply="", show_admissible=False)

    @classmethod
    def shop(cls) -> ChatFormat:
        """As the default, for the customer of a shop."""
        return cls(
            role="You are a customer of an online shop described in words. You search for what the instruction asks "
            "for, choose its options and buy it, with one action per turn.",
            reply="In every turn first reason about what to do next, then give exactly one action:\n"
            "<think>your reasoning</think><action>your action</action>",
            commands="Possible actions: {commands}",
            past="{step}. You saw: {observation}\nYour action: {action}",
        )

    @classmethod
    def named(cls, name: str) -> ChatFormat:
        """A preset by name: ``"default"``, ``"shop"`` or ``"compact"``."""
        presets = {"default": cls.default, "shop": cls.shop, "compact": cls.compact}
        return presets[require_name("chat format", name, presets)]()

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ChatFormat:
        """Rebuilds a format from :meth:`to_dict`; pieces left out have their defaults."""
        for name in values:
            require_name("field of ChatFormat", name, cls.__dataclass_fields__)
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        """All pieces as JSON-able values."""
        return asdict(self)

    def with_form(self, form: str) -> ChatFormat:
        """The same wording as ``"conversation"`` or ``"window:h"`` with h past steps."""
        name, colon, steps = form.partition(":")
        if form == "conversation" and not self.turn:
            return self
        if not colon:
            return replace(self, form=name)  # type: ignore[arg-type]
        if name != "window" or (window := digits(steps)) is None:
            raise ConfigError(f"A chat form is 'conversation' or 'window:<past steps>', got {form!r}")
        return replace(self, form="window", window=window)


def system(chat_format: ChatFormat, skill_text: str = "") -> list[Message]:
    """The system message, as a list of one; of none if every piece is empty. Without the skill, its text is ""."""
    skills = chat_format.skills.format(skills=skill_text) if skill_text else ""
    content = "\n\n".join(filter(None, (chat_format.role, skills, chat_format.reply)))
    return [{"role": "system", "content": content}] if content else []


def first_turn(chat_format: ChatFormat, observation: str, *, goal: str = "", commands: Iterable[str] = ()) -> Message:
    """The first user message: the same in both forms."""
    pieces = {"observation": _seen(chat_format, observation, goal), "goal": goal}
    return _user(chat_format, chat_format.first, pieces, commands)


def conversation_turn(
    chat_format: ChatFormat, observation: str, *, step: int, goal: str = "", commands: Iterable[str] = ()
) -> Message:
    """A later user message of the conversation form, after ``step`` steps."""
    pieces = {"observation": _seen(chat_format, observation, goal), "goal": goal, "step": step}
    return _user(chat_format, chat_format.turn, pieces, commands)


def window_prompt(
    chat_format: ChatFormat,
    past: Sequence[PastStep],
    observation: str,
    *,
    skill_text: str = "",
    goal: str = "",
    commands: Iterable[str] = (),
) -> list[Message]:
    """A whole prompt of the window form.

    Args:
        chat_format: The wording and the number of past steps shown.
        past: All steps so far, the oldest first; empty at the start.
        observation: What the agent sees now.
        skill_text: As in :func:`system`.
        goal: The task's sentence.
        commands: The possible commands.
    """
    start, commands = system(chat_format, skill_text), list(commands)
    opening = partial(first_turn, chat_format, observation, goal=goal, commands=commands)
    if not past or not (chat_format.window or chat_format.turn):
        return [*start, opening()]
    pieces = {
        "first": _seen(chat_format, past[0].observation, goal),
        "goal": goal,
        "history": _history(chat_format, past, goal),
        "shown": min(chat_format.window, len(past)),
        "step": len(past),
        "next_step": len(past) + 1,
        "observation": _seen(chat_format, observation, goal),
    }
    turn = _user(chat_format, chat_format.window_turn, pieces, commands)
    too_long = 0 < chat_format.longest < len(turn["content"])
    return [*start, opening() if too_long else turn]


def assistant(reply: str) -> Message:
    """The agent's reply, verbatim."""
    return {"role": "assistant", "content": reply}


def _user(chat_format: ChatFormat, template: str, pieces: Mapping[str, Any], commands: Iterable[str]) -> Message:
    names = (name for command in commands for name in chat_format.listed_as.get(command, (command,)))
    listed = chat_format.separator.join(chat_format.command.format(command=name) for name in names)
    content = template.format(**pieces, commands=listed)
    if chat_format.show_admissible:
        content = f"{content}\n\n{chat_format.commands.format(commands=listed)}"
    return {"role": "user", "content": content}


def _seen(chat_format: ChatFormat, observation: str, goal: str) -> str:
    """An observation as the format shows it."""
    parts = observation.split(chat_format.parts) if chat_format.parts else []
    if goal not in parts:
        return observation
    return chat_format.parts.join(f"'{part}'" for part in parts[parts.index(goal) + 1 :])


def _history(chat_format: ChatFormat, past: Sequence[PastStep], goal: str) -> str:
    begin = max(0, len(past) - chat_format.window)
    seen = [_seen(chat_format, entry.observation, goal) for entry in past[begin:]]
    if "{first}" in chat_format.window_turn and seen and begin == 0:
        seen[0] = chat_format.above
    return "\n".join(
        chat_format.past.format(step=step, observation=observation, action=past[step - 1].action)
        for step, observation in enumerate(seen, begin + 1)
    )


def _check_kind(name: str, kind: str, value: object) -> None:
    if kind == "bool":
        require_switch(f"ChatFormat.{name}", value)
    elif kind == "int":
        require_whole(f"ChatFormat.{name}", value, 0)
    elif kind.startswith("Mapping"):
        # The letters of a text would be taken for names.
        if not isinstance(value, Mapping) or any(isinstance(names, str) for names in value.values()):
            raise ConfigError(f"ChatFormat.{name} must be a mapping of commands to lists of names, got {value!r}")
    elif not isinstance(value, str):
        raise ConfigError(f"ChatFormat.{name} must be a text, got {value!r}")


def _check_template(name: str, template: str, known: set[str]) -> None:
    try:
        parts = [part for part in string.Formatter().parse(template) if part[1] is not None]
    except (ValueError, TypeError) as error:
        raise ConfigError(f"ChatFormat.{name} is not a template of str.format: {error} ({template!r})") from error
    used = {str(field) for _, field, *_ in parts}
    if any("{" in (how or "") for _, _, how, _ in parts):
        raise ConfigError(f"ChatFormat.{name} has a field within a field; say each by itself ({template!r})")
    if not used <= known:
        allowed = ", ".join(f"{{{field}}}" for field in sorted(known))
        raise ConfigError(f"ChatFormat.{name} uses {{{min(used - known)}}}; it may use {allowed}")
    try:
        template.format(**{field: 1 if field in _COUNTS else "x" for field in known})
    except ValueError as error:
        raise ConfigError(f"ChatFormat.{name} writes a field as it cannot be: {error} ({template!r})") from error


_COUNTS = ("shown", "step", "next_step")
"""The fields that are numbers."""
