"""What is to be known of a skill library before it is used: lengths, duplicates, gaps, and what tasks give away."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from skill_library import Skill, SkillLibrary
from skillc_gym.envs.registry import short_type

_ALIKE = 0.9
_LONG = 400
_COUNTED = "step|steps|least|most|than|to|of|in|after|about|only|or|and|the|first|last"
"""Words before a number that counts, and names nothing."""
_NAMED_THING = re.compile(rf"\b(?!(?:{_COUNTED}) )[a-z]+ (?:[2-9]|[1-9]\d+)\b")
_CODE = re.compile(r"\bb0[a-z0-9]{8}\b", re.IGNORECASE)


@dataclass(frozen=True)
class Flaw:
    """Something to look at: what was found, and what to do."""

    skill: str
    """Whose it is; "" for the library as a whole."""
    message: str
    serious: bool
    """Whether an agent would be misled or an episode fail."""


def check_library(library: SkillLibrary, task_types: Iterable[str] = ()) -> list[Flaw]:
    """Finds what would go wrong in episodes: types without a skill, skills for types that do not exist, duplicates.

    The environment's types are left unchecked where none are given.
    """
    known = tuple(task_types)
    missing = [
        Flaw("", f"no skill serves the task type {kind}: episodes of it fail", True)
        for kind in known
        if not library.serves(kind)
    ]
    unknown = [
        Flaw(skill.name, f"serves {kind}, which the environment does not have{_meant(kind, known)}", True)
        for skill in library.skills
        for kind in skill.task_types
        if known and not skill.is_general and kind not in known
    ]
    return [*missing, *unknown, *_duplicates(library)]


def lint_library(library: SkillLibrary) -> list[Flaw]:
    """Finds what makes a skill worse: it is long, or names things of one task."""
    return [finding for skill in library.skills for finding in _lint(skill)]


def diff_libraries(first: SkillLibrary, second: SkillLibrary) -> list[str]:
    """What changed between two libraries, as lines of a unified diff per skill; empty if their texts are equal."""
    old, new = ({skill.name: skill for skill in library.skills} for library in (first, second))
    lines: list[str] = []
    for name in sorted({*old, *new}):
        before, after = (_lines(skills.get(name)) for skills in (old, new))
        lines += difflib.unified_diff(before, after, f"{first.name}/{name}", f"{second.name}/{name}", lineterm="")
    return lines


def _meant(kind: str, known: Sequence[str]) -> str:
    """The type that a short or a mistyped name may mean."""
    full = {short_type(each): each for each in known} | {each: each for each in known}
    near = difflib.get_close_matches(kind, full, n=1)
    return f"; did you mean {full[near[0]]}?" if near else ""


def _duplicates(library: SkillLibrary) -> list[Flaw]:
    found = []
    for place, skill in enumerate(library.skills):
        for other in library.skills[place + 1 :]:
            share = difflib.SequenceMatcher(None, skill.text.split(), other.text.split(), autojunk=False).ratio()
            if share >= _ALIKE:
                found.append(Flaw(skill.name, f"says nearly the same as {other.name} ({100 * share:.0f} %)", False))
    return found


def _lint(skill: Skill) -> list[Flaw]:
    words = len(skill.text.split())
    found = [Flaw(skill.name, f"has {words} words; beyond {_LONG} a prompt grows long", False)] * (words > _LONG)
    named = sorted({*_NAMED_THING.findall(skill.text), *_CODE.findall(skill.text)})
    if named:
        found.append(Flaw(skill.name, f"names things of single tasks: {', '.join(named)}", True))
    return found


def _lines(skill: Skill | None) -> list[str]:
    return [] if skill is None else [f"task_types: {', '.join(skill.task_types)}", *skill.text.split("\n")]
