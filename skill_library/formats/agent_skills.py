"""Folders with a SKILL.md in each, as the specification (agentskills.io) has them, and this project's own are."""

from __future__ import annotations

from pathlib import Path

from skill_library.errors import SkillFileError
from skill_library.files import read_bounded
from skill_library.formats.folders import write_library
from skill_library.formats.form import SkillFormat
from skill_library.formats.names import check_size
from skill_library.loader import MAX_FILE_BYTES, check_inside, decode, read_skill, skill_files
from skill_library.skill import Skill

_MOST_REFERENCES = 100


def read_agent_skills(folder: Path, *, references: bool = False) -> list[Skill]:
    """Reads the skills below a folder, or the one that the folder is.

    Args:
        folder: A folder with a SKILL.md, or with subfolders that have one.
        references: Put the text files of ``references`` behind the skill's text, each under its name: an agent here has
            no tool to open them with.

    Raises:
        SkillFileError: There is no skill, or one that cannot be read or leads out of the folder by a link; the message
            names the file. Or there is more text than a library may have.
    """
    skills: list[Skill] = []
    for file in skill_files(folder):
        check_inside(file, folder)
        skills.append(read_skill(file, _references(file.parent / "references", folder) if references else ()))
        check_size(skills, str(folder))
    return skills


def _references(folder: Path, root: Path) -> list[str]:
    files = sorted(file for pattern in ("*.md", "*.txt") for file in folder.glob(pattern))
    if len(files) > _MOST_REFERENCES:
        raise SkillFileError(f"{folder} holds {len(files)} texts; at most {_MOST_REFERENCES} are read")
    return [_reference(file, root) for file in files]


def _reference(file: Path, root: Path) -> str:
    check_inside(file, root)
    try:
        return f"## references/{file.name}\n\n{decode(read_bounded(file, MAX_FILE_BYTES)).strip()}"
    except (OSError, ValueError) as error:
        raise SkillFileError(f"{file}: {error}") from error


FORMATS = tuple(
    SkillFormat(name, read=read_agent_skills, write=write_library, folder=True) for name in ("agent-skills", "library")
)
"""One form under two names: a library of this project's is one of the specification's."""
