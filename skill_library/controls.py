"""Control libraries: what a skill is worth because of what it says, and not because something stands in its place."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from skill_library.errors import SkillFileError, brief
from skill_library.skill import EVERY_TYPE, MAX_NAME, Skill, SkillLibrary

FILLER = "to"
"""Stands for every word of a blank skill. A small policy must know the word, or the blank skill is an empty one."""

_WORD = re.compile(r"\S+")


def control_library(library: SkillLibrary, control: str) -> SkillLibrary:
    """The library with texts that should not help.

    Args:
        library: The skills.
        control: One of :data:`CONTROLS`: "wrong", the specific skills of another task type, which is the next one of
            the sorted types; "shuffled", the words of each skill in an order drawn once; "blank", the same number of
            words, all of them :data:`FILLER`; "general", the general skills alone. Lines stay as long as they were, in
            words; "wrong" leaves general skills as they are.

    Returns:
        The library, named ``<name>.<control>``; so are the skills whose text has changed.

    Raises:
        SkillFileError: There is no such control, or the library has nothing to show for it, such as no wrong skill
            where a type and the next one share theirs.

    Examples:
        >>> library = SkillLibrary("shop", (Skill("shopping", "", ("shopping",), "Search, then buy."),))
        >>> control_library(library, "blank").for_task("shopping").text
        'to to to'
    """
    if control not in CONTROLS:
        raise SkillFileError(f"There is no control {brief(control)}; it is one of {', '.join(CONTROLS)}")
    if isinstance(library, _Rewritten) and control in ("wrong", "general"):
        # Words are changed last, since the grade "minimal" is made of the skills whose words are still their own.
        found = control_library(control_library(library.source, control), library.control)
    else:
        found = CONTROLS[control](library)
    return replace(found, name=f"{library.name}.{control}")


def _wrong(library: SkillLibrary) -> SkillLibrary:
    kinds = library.task_types
    shown_for = dict(zip(kinds, (*kinds[-1:], *kinds[:-1]), strict=True))
    moved = replace(library, skills=tuple(_moved(skill, shown_for) for skill in library.skills))
    own = library.source if isinstance(library, _Moved) else library
    right = [kind for kind in kinds if _specific(own, kind) & _specific(moved, kind)]
    if right or not kinds:
        raise SkillFileError(
            f"Library {brief(library.name)} has no wrong skill to show {right[0] if right else 'any task type'}, "
            "which has none or that of the next one; use one of the other controls"
        )
    return _Moved(library.name, moved.skills, library, "wrong")


@dataclass(frozen=True)
class _Controlled(SkillLibrary):
    """A control of ``source``; its grade "minimal" is the control of the source's."""

    source: SkillLibrary
    control: str

    def graded(self, grade: str) -> SkillLibrary:
        """The library at a grade; SkillFileError where the control has nothing to show at "minimal"."""
        return control_library(self.source.graded(grade), self.control) if grade == "minimal" else super().graded(grade)


class _Moved(_Controlled):
    """A library of wrong skills, which must be wrong at the grade "minimal", too."""


class _Rewritten(_Controlled):
    """A library of other words, in which no rule finds the grade "minimal": it has as many as the skills' own."""


def _specific(library: SkillLibrary, kind: str) -> set[str]:
    return {skill.text for skill in library.skills if kind in skill.task_types}


def _moved(skill: Skill, shown_for: Mapping[str, str]) -> Skill:
    return skill if skill.is_general else replace(skill, task_types=tuple(shown_for[kind] for kind in skill.task_types))


def _shuffled(library: SkillLibrary) -> SkillLibrary:
    def words_of(text: str) -> str:
        words, drawn = _WORD.findall(text), random.Random(text)
        order = words[:]
        drawn.shuffle(order)
        while order == words and len(set(words)) > 1:
            drawn.shuffle(order)
        rest = iter(order)
        return _WORD.sub(lambda _: next(rest), text)

    return _rewritten(library, "shuffled", words_of)


def _general(library: SkillLibrary) -> SkillLibrary:
    if not any(skill.is_general for skill in library.skills):
        raise SkillFileError(
            f"Library {brief(library.name)} has no general skill to show alone; use one of the other controls"
        )
    if all(skill.is_general for skill in library.skills):
        raise SkillFileError(
            f"Library {brief(library.name)} has general skills alone, which this control leaves as they are; use "
            "one of the other controls"
        )
    kept = (skill if skill.is_general else replace(skill, text="", minimal="") for skill in library.skills)
    return SkillLibrary(library.name, tuple(kept))


def _rewritten(library: SkillLibrary, control: str, rewrite: Callable[[str], str]) -> SkillLibrary:
    def changed(skill: Skill) -> Skill:
        return replace(skill, name=_named(skill.name, control), text=rewrite(skill.text), minimal="")

    found = _Rewritten(library.name, tuple(map(changed, library.skills)), library, control)
    shown = {kind: library.for_task(kind).text for kind in library.task_types or (EVERY_TYPE,)}
    same = [kind for kind, text in shown.items() if text and found.for_task(kind).text == text]
    if same and not isinstance(library, _Rewritten):  # whose words are no skill's any more
        raise SkillFileError(
            f"The control {control} of library {brief(library.name)} would show {same[0]} the very skill, whose words "
            "it does not change; use one of the other controls"
        )
    return found


def _named(name: str, control: str) -> str:
    """The control's name of a skill; of a long one its beginning, told from others by a hash."""
    if len(name) + len(control) < MAX_NAME and not name.endswith("."):
        return f"{name}.{control}"
    told = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{name[: MAX_NAME - len(told) - len(control) - 2].rstrip('. ')}-{told}.{control}"


CONTROLS: Mapping[str, Callable[[SkillLibrary], SkillLibrary]] = {
    "wrong": _wrong,
    "shuffled": _shuffled,
    "blank": lambda library: _rewritten(library, "blank", lambda text: _WORD.sub(FILLER, text)),
    "general": _general,
}
"""What makes them, by name."""
