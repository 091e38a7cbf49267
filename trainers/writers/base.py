"""What writers write, what is asked of them, and the strict reading of a language model's replies."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, cast, get_args

from skill_library.errors import brief
from skillc_gym.chat import Message
from skillc_gym.episodes import Episode
from skillc_gym.errors import ConfigError, SkillCError
from trainers.base import check_values

EditKind = Literal["ADD", "AGREE", "EDIT", "REMOVE"]
Operation = Literal["ADD", "UPDATE", "DELETE", "NOOP"]
_EDIT = re.compile(r"(ADD|AGREE|EDIT|REMOVE)(?: (\d{1,9}))?: (.+)")
_FENCED = re.compile(r"```(?:json)?\n(.*)\n```", re.DOTALL)


class BadReplyError(SkillCError, ValueError):
    """A reply that does not have the asked form; callers count it and go on."""


@dataclass(frozen=True)
class Edit:
    """One edit of a list of rules; ``rule`` counts from 1 and is None for a new one."""

    kind: EditKind
    rule: int | None
    text: str


@dataclass(frozen=True)
class Decision:
    """What a new fact means for a memory; ``number`` counts the similar facts from 1 and says which one is meant."""

    operation: Operation
    number: int = 0
    text: str = ""


def read_object(reply: str, fields: Mapping[str, type]) -> dict[str, Any]:
    """Reads one JSON object with just these fields (a bool is no int), alone or in a code fence."""
    fenced = _FENCED.fullmatch(reply.strip())
    try:
        value = json.loads(fenced[1] if fenced else reply)
    except (ValueError, RecursionError) as error:  # a number of very many digits is no JSONDecodeError
        raise BadReplyError(f"The reply is not JSON: {error}") from error
    if not isinstance(value, dict) or set(value) != set(fields):
        raise BadReplyError(f"The reply must be a JSON object with the fields {', '.join(fields)}")
    for name, kind in fields.items():
        if type(value[name]) is not kind:
            raise BadReplyError(f"The field {name} must be of type {kind.__name__}, got {brief(value[name])}")
    return value


def read_lists(reply: str, *fields: str, at_most: int, longest: int) -> tuple[list[str], ...]:
    """Reads ``{"<field>": [text, ...], ...}`` into one list per field."""
    lists = read_object(reply, dict.fromkeys(fields, list))
    for texts in lists.values():
        if len(texts) > at_most:
            raise BadReplyError(f"At most {at_most} texts were asked for, got {len(texts)}")
    return tuple([_text(text, longest) for text in lists[field]] for field in fields)


def read_text(reply: str, field: str, *, longest: int) -> str:
    """Reads ``{"<field>": text}``; errors as of :func:`read_lists`."""
    return _text(read_object(reply, {field: str})[field], longest)


def read_decision(reply: str, similar: int, *, longest: int) -> Decision:
    """Reads ``{"operation": "UPDATE", "number": 2, "text": "..."}`` (Mem0, arXiv 2504.19413), of ``similar`` facts."""
    found = read_object(reply, {"operation": str, "number": int, "text": str})
    if found["operation"] not in get_args(Operation):
        raise BadReplyError(f"The operation is {' or '.join(get_args(Operation))}, got {brief(found['operation'])}")
    operation = cast("Operation", found["operation"])
    if operation in ("ADD", "NOOP"):
        return Decision(operation)
    if not 1 <= found["number"] <= similar:
        raise BadReplyError(f"{operation} takes the number of a fact from 1 to {similar}, got {found['number']}")
    text = _text(found["text"], longest) if operation == "UPDATE" else ""
    return Decision(operation, found["number"], text)


def read_edits(reply: str, rules: int, *, at_most: int = 4, longest: int = 600) -> list[Edit]:
    """Reads lines ``ADD: text``, ``AGREE 2: text``, ``EDIT 2: text``, ``REMOVE 2: text`` (ExpeL, arXiv 2308.10144)."""
    lines = [line.strip() for line in reply.splitlines() if line.strip()]
    if not lines or len(lines) > at_most:
        raise BadReplyError(f"1 to {at_most} edits were asked for, got {len(lines)} lines")
    return [_edit(line, rules, longest) for line in lines]


def _edit(line: str, rules: int, longest: int) -> Edit:
    match = _EDIT.fullmatch(line)
    if match is None:
        raise BadReplyError(f"An edit is written {' or '.join(get_args(EditKind))}, the rule's number, ': ' and a text")
    kind, number, text = match.groups()
    rule = int(number) if number else None
    if (kind == "ADD") != (rule is None) or (rule is not None and not 1 <= rule <= rules):
        raise BadReplyError(f"ADD takes no number, the others one from 1 to {rules}; got {brief(line)}")
    return Edit(cast("EditKind", kind), rule, _text(text, longest))


def _text(text: Any, longest: int) -> str:
    if not isinstance(text, str) or not text.strip() or len(text) > longest:
        raise BadReplyError(f"Each text must have 1 to {longest} characters, got {brief(text)}")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise BadReplyError(f"A text holds half of a surrogate pair, which nothing can write: {brief(text)}")
    return text.strip()


Kind = Literal["general", "task", "principle"]
AnswerChats = Callable[[Sequence[Sequence[Message]]], Sequence[str]]
"""Gives one reply to each of several chats."""


@dataclass(frozen=True)
class Draft:
    """A text that somebody proposes for a bank of skills.

    ``key`` is the goal by which it is retrieved, ``task_type`` "" for all types, ``sources`` are training tasks alone.
    """

    text: str
    key: str = ""
    task_type: str = ""
    kind: Kind = "task"
    writer: str = ""
    sources: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_values(self)
        if not self.text.strip():
            raise ConfigError("An entry needs a text that an agent can read, got an empty one")


class Writer:
    """Turns episodes of training tasks into texts; this one writes none, so that a bank stays what it was."""

    name: str = "none"
    """Recorded with every text it writes."""
    bad_replies: int = 0
    """Replies so far that could not be read; each costs nothing but the text it would have been."""

    def write(self, episodes: Sequence[Episode]) -> list[Draft]:
        """Writes skills from won and lost episodes of any types; perhaps none."""
        return []

    def write_lessons(self, episodes: Sequence[Episode]) -> list[Draft]:
        """Writes what each episode taught, where it taught something."""
        return []


class AgentWriter(Protocol):
    """Writes plans, edits of rules, and facts; name and bad replies as of :class:`Writer`."""

    name: str
    bad_replies: int

    def reflect(self, failed: Sequence[Episode], earlier: Sequence[Sequence[str]]) -> list[str | None]:
        """Writes a plan for the next try of each failed task, None where there is none; each has had earlier ones."""

    def edit(self, rules: Sequence[str], episodes: Sequence[Episode]) -> list[Edit]:
        """Edits a list of rules in the light of episodes: a failed one and a won one of a task, or won ones alone."""

    def facts(self, episode: Episode) -> list[str]:
        """Extracts what is worth remembering of an episode; perhaps nothing."""

    def decide(self, fact: str, similar: Sequence[str]) -> Decision:
        """Says what a fact means for a memory that holds similar ones, the most similar first."""
