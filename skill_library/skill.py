"""Skill and SkillLibrary: what an agent reads for a task, hashed."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections import Counter
from dataclasses import InitVar, dataclass, replace
from functools import cached_property

from skill_library.errors import SkillFileError, brief

EVERY_TYPE = "*"
"""The task type of a general skill: it stands in front of the task's own."""

SKILL_FILE = "SKILL.md"
"""The file that makes a folder a skill."""

GRADES = ("none", "minimal", "full")
"""How much of a skill an agent may be shown."""


MAX_TASK_TYPES = 1_000
MAX_CHARACTERS = 4_194_304
"""Most different task types, and characters of text in all, of one library."""

MAX_NAME = 64
_NAME = re.compile(rf"(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9 _.-]{{0,{MAX_NAME - 1}}}", re.ASCII)
_MAX_DESCRIPTION = 4_096
_MAX_TASK_TYPE = 200
_ESSENTIAL = "key step"
_UNFIT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
"""Control characters but for tab and line end, and halves of surrogate pairs."""


def fit_text(text: str) -> str:
    """A text as a skill may have it: no control characters, LF as the end of lines, no white space around it."""
    return _UNFIT.sub("", text.replace("\r\n", "\n").replace("\r", "\n")).strip()


def _sha256(text: str) -> str:
    # A model may have written half of a surrogate pair, which has no UTF-8.
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


@dataclass(frozen=True)
class SkillText:
    """What an agent reads for one task: the general skills and the task's own, joined by empty lines.

    ``name`` joins their names, e.g. ``general+heat``. Older code gives the hash as a third argument; it is not read.
    """

    name: str
    text: str
    given_sha256: InitVar[str | None] = None

    @cached_property
    def sha256(self) -> str:
        """Hex digest of the text in UTF-8."""
        return _sha256(self.text)


@dataclass(frozen=True)
class Skill:
    """One skill folder.

    Attributes:
        name: Unique within its library: up to 64 letters, digits, blanks and ``_ . -`` of ASCII, a letter or digit
            first, so that no two names look alike and none is a path.
        description: One sentence on when the skill helps; agents never read it.
        task_types: The task types it serves; ``("*",)`` for all.
        text: What the agent reads, without surrounding white space.
        minimal: What it reads at the grade "minimal", no longer than ``text``; "" leaves it to the rule of
            :attr:`minimal_text`.

    Raises:
        SkillFileError: One of them is not so.
    """

    name: str
    description: str
    task_types: tuple[str, ...]
    text: str
    minimal: str = ""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise SkillFileError(
                f"{brief(self.name)} is no name for a skill; use up to 64 letters, digits, blanks, '_', '-' and single "
                "dots of ASCII, beginning with a letter or digit"
            )
        if len(self.description) > _MAX_DESCRIPTION:
            raise SkillFileError(f"the description of {self.name!r} is longer than {_MAX_DESCRIPTION:,} characters")
        if not self.task_types:
            raise SkillFileError(f"{self.name!r} serves no task type; name some, or '*' for all")
        for kind in self.task_types:
            # The library's hash joins them with commas.
            if not kind or len(kind) > _MAX_TASK_TYPE or "," in kind or not kind.isprintable():
                raise SkillFileError(
                    f"{brief(kind)} is no task type: up to {_MAX_TASK_TYPE} printable characters without a comma"
                )
        if self.is_general and len(self.task_types) > 1:
            raise SkillFileError(
                f"{self.name!r} serves all task types and names some beside; task_types is ['*'] or names"
            )
        if found := _UNFIT.search(self.text + self.minimal + self.description):
            raise SkillFileError(f"the text of {self.name!r} holds the character U+{ord(found[0]):04X}; remove it")
        if len(self.minimal) > len(self.text):
            raise SkillFileError(f"the minimal text of {self.name!r} is longer than its full one; shorten it")

    @property
    def is_general(self) -> bool:
        """Whether it serves every task type."""
        return EVERY_TYPE in self.task_types

    @property
    def minimal_text(self) -> str:
        """The skill at the grade "minimal": its own short text, else its first line and those with its key step."""
        if self.minimal:
            return self.minimal
        first, *others = self.text.split("\n")
        return "\n".join([first, *(line for line in others if _ESSENTIAL in line.lower())])

    @cached_property
    def sha256(self) -> str:
        """Hex digest of the text in UTF-8."""
        return _sha256(self.text)

    def graded(self, grade: str) -> Skill:
        """The skill with the text of one of :data:`GRADES`; at "none" it says nothing."""
        text = {"none": "", "minimal": self.minimal_text, "full": self.text}[grade]
        return self if grade == "full" else replace(self, text=text, minimal="")


@dataclass(frozen=True)
class SkillLibrary:
    """The skills of one domain: the folder's name, and general skills first, then by name."""

    name: str
    skills: tuple[Skill, ...]

    def __post_init__(self) -> None:
        self._check_names()
        if len(self.task_types) > MAX_TASK_TYPES:
            raise SkillFileError(f"Library {brief(self.name)} serves more than {MAX_TASK_TYPES:,} task types")
        if sum(len(skill.text) for skill in self.skills) > MAX_CHARACTERS:
            raise SkillFileError(f"Library {brief(self.name)} has more than {MAX_CHARACTERS:,} characters of text")

    def _check_names(self) -> None:
        taken: dict[str, str] = {}
        for skill in self.skills:
            if other := taken.get(skill.name.lower()):
                raise SkillFileError(
                    f"Library {brief(self.name)} has skills named {other!r} and {skill.name!r}; names are unique, "
                    "whatever their case: rename one"
                )
            taken[skill.name.lower()] = skill.name

    @property
    def task_types(self) -> tuple[str, ...]:
        """The task types that have a skill of their own, sorted."""
        return tuple(sorted({kind for skill in self.skills for kind in skill.task_types} - {EVERY_TYPE}))

    @cached_property
    def sha256(self) -> str:
        """Hex digest over the names, task types and texts of all skills, short ones included where they are given."""
        parts = [f"{skill.name}\0{','.join(skill.task_types)}\0{skill.sha256}\n" for skill in self.skills]
        short = [f"{skill.name}\0{_sha256(skill.minimal)}\n" for skill in self.skills if skill.minimal]
        return _sha256("".join(parts + short))

    @cached_property
    def longest(self) -> int:
        """Length in characters of the longest text :meth:`for_task` can give."""
        general = sum(len(skill.text) + 2 for skill in self.skills if skill.is_general)
        own: Counter[str] = Counter()
        for skill in self.skills:
            for kind in set(skill.task_types) - {EVERY_TYPE}:
                own[kind] += len(skill.text) + 2
        return max(0, general + max(own.values(), default=0) - 2)

    def serves(self, task_type: str) -> bool:
        """Whether it has skills of a task type's own, or names no task types at all, as libraries of others do."""
        return task_type in self.task_types or not self.task_types

    def graded(self, grade: str) -> SkillLibrary:
        """The library with every skill at one of :data:`GRADES`; SkillFileError for another one."""
        if grade not in GRADES:
            raise SkillFileError(f"There is no grade {brief(grade)} of a skill; it is one of {', '.join(GRADES)}")
        return self if grade == "full" else replace(self, skills=tuple(skill.graded(grade) for skill in self.skills))

    def for_task(self, task_type: str) -> SkillText:
        """Joins the general skills and the task type's own; SkillFileError where only other types have their own."""
        own = [skill for skill in self.skills if task_type in skill.task_types and task_type != EVERY_TYPE]
        if not self.serves(task_type):
            raise self._no_skill(task_type)
        chosen = [skill for skill in [*(skill for skill in self.skills if skill.is_general), *own] if skill.text]
        return SkillText("+".join(skill.name for skill in chosen), "\n\n".join(skill.text for skill in chosen))

    def _no_skill(self, task_type: str) -> SkillFileError:
        near = difflib.get_close_matches(task_type, self.task_types, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        return SkillFileError(
            f"Library {brief(self.name)} has no skill for task type {brief(task_type)}; it serves "
            f"{', '.join(self.task_types[:20])}{', ...' if len(self.task_types) > 20 else ''}."
            f"{hint} Name another library=, or add a folder with a {SKILL_FILE} whose metadata.task_types name it"
        )
