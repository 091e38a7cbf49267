"""Skills on disk: folders with a SKILL.md of YAML front matter and text, read strictly and hashed."""

from __future__ import annotations

import difflib
import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import yaml

from skill_library.errors import SkillFileError

__all__ = ["BUILT_IN", "EVERY_TYPE", "Skill", "SkillLibrary", "SkillText", "load_library", "read_skill"]

BUILT_IN = ("alfworld", "webshop")
"""Names of the libraries that come with the package."""

EVERY_TYPE = "*"
"""The task type of a general skill: it stands in front of the task's own."""

SKILL_FILE = "SKILL.md"
_FENCE = "---"


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


@dataclass(frozen=True)
class SkillText:
    """What an agent reads for one task: the general skills and the task's own, joined.

    Attributes:
        name: The skills' names joined by ``+``, e.g. ``general+heat``.
        text: Their texts, one empty line between two.
        sha256: Hex digest of ``text`` in UTF-8.
    """

    name: str
    text: str
    sha256: str


@dataclass(frozen=True)
class Skill:
    """One skill folder.

    Attributes:
        name: Unique within its library.
        description: One sentence on when the skill helps; agents never read it.
        task_types: The task types it serves; ``("*",)`` for all.
        text: What the agent reads, without surrounding white space.
    """

    name: str
    description: str
    task_types: tuple[str, ...]
    text: str

    @property
    def is_general(self) -> bool:
        """Whether it serves every task type."""
        return EVERY_TYPE in self.task_types

    @property
    def sha256(self) -> str:
        """Hex digest of the text in UTF-8."""
        return _sha256(self.text)


@dataclass(frozen=True)
class SkillLibrary:
    """The skills of one domain.

    Attributes:
        name: The folder's name.
        skills: General ones first, then by name.
    """

    name: str
    skills: tuple[Skill, ...]

    def __post_init__(self) -> None:
        names = [skill.name for skill in self.skills]
        for name in names:
            if names.count(name) > 1:
                raise SkillFileError(
                    f"Library {self.name!r} has {names.count(name)} skills named {name!r}; names are unique, rename one"
                )

    @property
    def task_types(self) -> tuple[str, ...]:
        """The task types that have a skill of their own, sorted."""
        return tuple(sorted({kind for skill in self.skills for kind in skill.task_types} - {EVERY_TYPE}))

    @cached_property
    def sha256(self) -> str:
        """Hex digest over the names, task types and texts of all skills."""
        parts = [f"{skill.name}\0{','.join(skill.task_types)}\0{skill.sha256}\n" for skill in self.skills]
        return _sha256("".join(parts))

    @cached_property
    def longest(self) -> int:
        """Length in characters of the longest text :meth:`for_task` can give."""
        return max((len(self.for_task(kind).text) for kind in self.task_types), default=0)

    def for_task(self, task_type: str) -> SkillText:
        """Joins the general skills and the task type's own.

        Args:
            task_type: A task type as the environment names it.

        Raises:
            SkillFileError: No skill serves this very type; a general skill alone is not enough.
        """
        own = [skill for skill in self.skills if task_type in skill.task_types and task_type != EVERY_TYPE]
        if not own:
            raise self._no_skill(task_type)
        chosen = [skill for skill in self.skills if skill.is_general] + own
        text = "\n\n".join(skill.text for skill in chosen)
        return SkillText("+".join(skill.name for skill in chosen), text, _sha256(text))

    def _no_skill(self, task_type: str) -> SkillFileError:
        near = difflib.get_close_matches(task_type, self.task_types, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        return SkillFileError(
            f"Library {self.name!r} has no skill for task type {task_type!r}; it serves {', '.join(self.task_types)}."
            f"{hint} Add a folder with a {SKILL_FILE} whose task_types name it"
        )


def load_library(name: str | os.PathLike[str]) -> SkillLibrary:
    """Reads a skill library.

    Args:
        name: The name of a built-in library (``"alfworld"``, ``"webshop"``), or the path of a folder whose subfolders
            each hold a SKILL.md. A built-in name wins over a folder of that name; write ``./alfworld`` for the folder.

    Returns:
        The library; the same object as long as no file changes.

    Raises:
        SkillFileError: The folder does not exist or holds no skill, or one of its files is not a skill.
    """
    folder = Path(__file__).parent / name if name in BUILT_IN else Path(name)
    if not folder.is_dir():
        raise _no_library(name)
    files = sorted(folder.glob(f"*/{SKILL_FILE}"))
    if not files:
        raise SkillFileError(f"{folder} holds no skill; expected subfolders with a {SKILL_FILE} in each")
    stamps = tuple((str(file), file.stat().st_mtime_ns, file.stat().st_size) for file in files)
    return _load(folder.resolve().name, stamps)


def read_skill(file: Path) -> Skill:
    """Reads one SKILL.md: front matter between two ``---`` lines, then the text.

    The front matter needs ``name``, ``description`` (strings) and ``task_types`` (a list of strings); other fields are
    allowed and ignored. Line ends are normalised, so hashes do not depend on how the file was checked out.

    Raises:
        SkillFileError: Anything of that is missing, of the wrong type, or not UTF-8.
    """
    front, body = _split(file, _decode(file))
    fields = _fields(file, front)
    text = body.strip()
    if not text:
        raise SkillFileError(
            f"{file}: the text after the front matter is empty; write what the agent should read there"
        )
    return Skill(_string(file, fields, "name"), _string(file, fields, "description"), _task_types(file, fields), text)


@lru_cache(maxsize=32)
def _load(name: str, stamps: tuple[tuple[str, int, int], ...]) -> SkillLibrary:
    skills = [read_skill(Path(file)) for file, _, _ in stamps]
    return SkillLibrary(name, tuple(sorted(skills, key=lambda skill: (not skill.is_general, skill.name))))


def _no_library(name: str | os.PathLike[str]) -> SkillFileError:
    near = difflib.get_close_matches(str(name), BUILT_IN, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return SkillFileError(
        f"No skill library {str(name)!r}: expected {' or '.join(map(repr, BUILT_IN))}, or a folder whose subfolders "
        f"each hold a {SKILL_FILE}.{hint}"
    )


def _decode(file: Path) -> str:
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SkillFileError(f"{file} is not UTF-8 (byte {error.start}); save it as UTF-8") from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _split(file: Path, text: str) -> tuple[str, str]:
    lines = text.split("\n")
    fences = [number for number, line in enumerate(lines) if line.rstrip() == _FENCE][:2]
    if not fences or fences[0] != 0:
        raise SkillFileError(
            f"{file} has no front matter; its first line must be '---', then name, description, task_types"
        )
    if len(fences) < 2:
        raise SkillFileError(f"{file}: the front matter never ends; close it with a line '---'")
    return "\n".join(lines[1 : fences[1]]), "\n".join(lines[fences[1] + 1 :])


def _fields(file: Path, front: str) -> Mapping[str, Any]:
    try:
        fields = yaml.safe_load(front)
    except (yaml.YAMLError, ValueError) as error:  # a malformed date is a plain ValueError
        raise SkillFileError(f"{file}: the front matter is not YAML: {error}") from error
    if not isinstance(fields, dict):
        raise SkillFileError(f"{file}: the front matter must be fields like 'name: heat', got {front.strip()[:60]!r}")
    missing = [name for name in ("name", "description", "task_types") if name not in fields]
    if missing:
        raise SkillFileError(f"{file}: the front matter lacks {', '.join(missing)}")
    return fields


def _string(file: Path, fields: Mapping[str, Any], field: str) -> str:
    value = fields[field]
    if not isinstance(value, str) or not value.strip():
        raise SkillFileError(f"{file}: {field} must be a non-empty string, got {value!r}")
    return value.strip()


def _task_types(file: Path, fields: Mapping[str, Any]) -> tuple[str, ...]:
    kinds: Iterable[Any] = fields["task_types"]
    if not isinstance(kinds, list) or not kinds or not all(isinstance(kind, str) and kind for kind in kinds):
        raise SkillFileError(f'{file}: task_types must be a list of strings ([heat], or ["*"] for all), got {kinds!r}')
    return tuple(kinds)
