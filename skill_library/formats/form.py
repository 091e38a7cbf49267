"""What a form of skills is, so that a new one is one module with ``FORMAT``, and the rules that all forms share."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from skill_library.errors import SkillFileError, brief
from skill_library.loader import MAX_SKILLS
from skill_library.skill import EVERY_TYPE, MAX_CHARACTERS, MAX_NAME, Skill


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
    suffixes: tuple[str, ...] = ()
    """Endings of files that hold it, such as ``.json``; "" stands for any that no other form claims."""


def check_count(count: int, source: str) -> None:
    """Refuses more skills than a library may have, before each is compared with all others; SkillFileError."""
    if count > MAX_SKILLS:
        raise SkillFileError(f"{source} holds {count:,} skills; a library has at most {MAX_SKILLS:,}")


def check_size(skills: Iterable[Skill], source: str) -> None:
    """Refuses more text than a library may have; SkillFileError."""
    if sum(len(skill.text) for skill in skills) > MAX_CHARACTERS:
        raise SkillFileError(f"{source} has more than {MAX_CHARACTERS:,} characters of text, the most of a library")


def require_text(skill: Skill) -> None:
    """Refuses a skill that says nothing, which could not be read back; SkillFileError."""
    if not skill.text:
        raise SkillFileError(f"{skill.name!r} has no text, and could not be read back; leave it out, or give it one")


def plain_name(text: str, filler: str = "-") -> str:
    """Lower-case letters and digits of ASCII, whatever is between them as one filler; "skill" if nothing is left."""
    return re.sub(r"[^a-z0-9]+", filler, text.lower()).strip(filler)[:MAX_NAME].strip(filler) or "skill"


def unique(name: str, taken: Collection[str]) -> str:
    """The name, with a number behind it where it is taken; case does not make a difference."""
    lower = {other.lower() for other in taken}
    number, found = 1, name
    while found.lower() in lower:
        number += 1
        found = f"{name[: MAX_NAME - 5].rstrip('-')}-{number}"
    return found


def assign_types(
    skills: Iterable[Skill],
    types: Mapping[str, Sequence[str]],
    by_skill: Mapping[str, Sequence[str]] | None = None,
) -> list[Skill]:
    """Renames the task types of skills.

    Args:
        skills: Skills with the types as their source calls them.
        types: By type, the environment's types; ``["*"]`` makes a skill general.
        by_skill: The same by a skill's name, whatever types it has; those of ``types`` by default.

    Raises:
        SkillFileError: A type is not mapped.
    """
    named = types if by_skill is None else by_skill
    return [
        replace(skill, task_types=tuple(named[skill.name]) if skill.name in named else _types(skill, types))
        for skill in skills
    ]


def _types(skill: Skill, types: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    if skill.is_general:
        return skill.task_types
    missing = [kind for kind in skill.task_types if kind not in types]
    if missing:
        raise SkillFileError(
            f"{skill.name!r} serves {brief(missing[0])}, which is no task type of the environment; say which one it is "
            f"(--types {missing[0]}=TYPE, or {missing[0]}=* for all); known are {', '.join(sorted(types))}"
        )
    found = tuple(dict.fromkeys(kind for name in skill.task_types for kind in types[name]))
    return (EVERY_TYPE,) if EVERY_TYPE in found else found
