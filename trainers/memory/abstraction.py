"""From the commands of one episode to steps that hold for other tasks too, by the form of the commands alone.

Two forms are known: entities with a number (``take mug 1 from shelf 2``) and arguments in brackets (``click[red]``).
Things become ``O`` and places ``R``, as in the shipped skills; what is used as a tool keeps its name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["abstract_actions"]

_ENTITY = r"\w+ \d+"
_NUMBERED = re.compile(rf"\b({_ENTITY})\b")
_TOOL = re.compile(rf"(?:\bwith|^use) ({_ENTITY})$")
_PLACE = re.compile(rf"(?:\b(?:to|from|in|on)|^open|^close) ({_ENTITY})")
_BRACKETS = re.compile(r"(\w+)\[(.*)\]", re.DOTALL)
_CODE = re.compile(r"(?=.*\d)(?=.*[a-z])[a-z0-9]{8,}")


def abstract_actions(actions: Sequence[str], goal: str) -> list[str]:
    """Puts placeholders for what changes from task to task.

    Args:
        actions: The commands of an episode, in order.
        goal: The task's sentence; what a command quotes from it is an option.

    Returns:
        One step per command.

    Examples:
        >>> abstract_actions(["take mug 1 from shelf 2", "go to microwave 1", "heat mug 1 with microwave 1"], "")
        ['take O from R', 'go to microwave 1', 'heat O with microwave 1']
        >>> abstract_actions(["search[red mug]", "click[b0gavnsvxn]", "click[red]", "click[buy now]"], "a red mug")
        ['search[words]', 'click[its code]', 'click[option]', 'click[buy now]']
    """
    tools = {match[1] for action in actions if (match := _TOOL.search(action))}
    return [_abstract(action.strip(), tools, goal.lower()) for action in actions]


def _abstract(action: str, tools: set[str], goal: str) -> str:
    bracketed = _BRACKETS.fullmatch(action)
    if bracketed:
        return f"{bracketed[1]}[{_argument(bracketed[1], bracketed[2], goal)}]"
    places = {match[1] for match in _PLACE.finditer(action)}
    return _NUMBERED.sub(lambda match: _entity(match[1], tools, places), action)


def _argument(verb: str, argument: str, goal: str) -> str:
    if verb == "search":
        return "words"
    if _CODE.fullmatch(argument):
        return "its code"
    return "option" if argument.lower() in goal else argument


def _entity(name: str, tools: set[str], places: set[str]) -> str:
    if name in tools:
        return name
    return "R" if name in places else "O"
