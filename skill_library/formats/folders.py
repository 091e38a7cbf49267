"""Writing folders with a SKILL.md in each, in this project's form."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from skill_library.errors import SkillFileError
from skill_library.formats.names import plain_name, unique
from skill_library.skill import SKILL_FILE, Skill, SkillLibrary

__all__ = ["new_folder", "require_free", "skill_file", "write_library"]


def write_library(skills: Iterable[Skill], folder: Path) -> Path:
    """Writes a library that :func:`skill_library.load_library` reads back equal.

    Args:
        skills: Their names must differ, as in any library.
        folder: Made; must be empty or not there.

    Raises:
        SkillFileError: The folder holds something, or the skills make no library.
    """
    listed = SkillLibrary(folder.name, tuple(skills)).skills
    new_folder(folder)
    names: list[str] = []
    for skill in listed:
        names.append(unique(plain_name(skill.name), names))
        fields: dict[str, Any] = {
            "name": skill.name,
            "description": skill.description,
            "task_types": list(skill.task_types),
        }
        skill_file(folder / names[-1], fields | ({"minimal": skill.minimal} if skill.minimal else {}), skill.text)
    return folder


def require_free(folder: Path) -> None:
    """Checks that a library could be written into a folder, before the work that it takes to have one.

    Raises:
        SkillFileError: It is there and holds something, or there is a file in its place.
    """
    if folder.exists() and not folder.is_dir():
        raise SkillFileError(f"The folder {folder} cannot be made (there is a file of that name); name another one")
    if folder.is_dir() and any(folder.iterdir()):
        raise SkillFileError(f"{folder} is not empty; name another folder, so that nothing is overwritten")


def new_folder(folder: Path) -> None:
    """Makes a folder.

    Raises:
        SkillFileError: It is there and holds something, or there is a file in its place.
    """
    require_free(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SkillFileError(f"The folder {folder} cannot be made ({error.strerror}); name another one") from error


def skill_file(folder: Path, fields: Mapping[str, Any], text: str) -> None:
    """Writes one SKILL.md; values in the front matter are JSON, which YAML reads, so nothing needs quoting rules."""
    folder.mkdir()
    front = "\n".join(f"{name}: {_yaml(value)}" for name, value in fields.items())
    (folder / SKILL_FILE).write_text(f"---\n{front}\n---\n{text}\n", encoding="utf-8", newline="\n")


def _yaml(value: Any) -> str:
    """JSON, in which what YAML takes for a line's end or refuses is escaped."""
    text = json.dumps(value, ensure_ascii=False)
    return re.sub("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]", lambda found: f"\\u{ord(found[0]):04x}", text)
