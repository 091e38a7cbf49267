"""What a form of skills is, so that a new one is one module: ``FORMAT`` in this package, or in one of your own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from skill_library.skill import Skill


@dataclass(frozen=True)
class SkillFormat:
    """A form in which skills are kept: as one text, or as a folder."""

    name: str
    """As users type it: ``--to bank``."""
    read: Callable[..., list[Skill]]
    """Gives a list of skills: from the text, or from the folder's path and ``references=bool``."""
    write: Callable[..., Any]
    """Gives the text of a list of skills, or writes them to the path of a folder that is not there or empty."""
    folder: bool = False
    """Whether it is a folder."""
    suffixes: tuple[str, ...] = ()
    """Endings of files that hold it, such as ``.json``; "" stands for any that no other form claims."""
