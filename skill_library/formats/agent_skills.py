"""The convention of the ecosystem: a folder per skill with SKILL.md (name, description, metadata) and references/.

It knows no task types, so they are kept in ``metadata.task_types``, joined by commas; a skill without them is general.
Names there are lower-case letters, digits and hyphens, and equal their folder's; a name that is not so is kept in
``metadata.library_name``, and a short text in ``metadata.minimal``.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from skill_library.errors import SkillFileError
from skill_library.files import UnreadableFileError, read_bounded, stays_inside
from skill_library.formats.folders import new_folder, skill_file, write_library
from skill_library.formats.form import SkillFormat
from skill_library.formats.names import check_count, check_size, plain_name, unique
from skill_library.front_matter import FrontMatter
from skill_library.loader import MAX_FILE_BYTES, decode, split_front_matter
from skill_library.skill import EVERY_TYPE, SKILL_FILE, Skill

__all__ = ["FORMATS", "read_agent_skills", "write_agent_skills"]

_MOST_REFERENCES = 100
_LONGEST_DESCRIPTION = 1024


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
    single = folder / SKILL_FILE
    files = [single] if single.is_file() else sorted(folder.glob(f"*/{SKILL_FILE}"))
    if not files:
        raise SkillFileError(f"{folder} holds no skill; expected a {SKILL_FILE} in it or in its subfolders")
    check_count(len(files), str(folder))
    skills: list[Skill] = []
    for file in files:
        skills.append(_read(file, folder, references))
        check_size(skills, str(folder))
    return skills


def _read(file: Path, root: Path, references: bool) -> Skill:
    try:
        _check_inside(file, root)
        front, body = split_front_matter(decode(read_bounded(file, MAX_FILE_BYTES)))
        fields = FrontMatter(front)
        fields.require(("name", "description"))
        metadata = fields.texts("metadata")
        text = "\n\n".join([body.strip(), *(_references(file.parent / "references", root) if references else ())])
        if not text.strip():
            raise ValueError("the text after the front matter is empty")
        name = metadata.get("library_name") or fields.string("name")
        minimal = fields.string("minimal") if "minimal" in fields else metadata.get("minimal", "")
        return Skill(name, fields.string("description"), _types(fields, metadata), text, minimal)
    except (UnreadableFileError, ValueError) as error:
        raise SkillFileError(f"{file}: {error}") from error


def _types(fields: FrontMatter, metadata: dict[str, str]) -> tuple[str, ...]:
    if "task_types" in fields:  # this project's own form
        return fields.strings("task_types", '[heat], or ["*"] for all')
    kept = [kind.strip() for kind in metadata.get("task_types", "").split(",") if kind.strip()]
    return tuple(kept) or (EVERY_TYPE,)


def _references(folder: Path, root: Path) -> list[str]:
    files = sorted(file for pattern in ("*.md", "*.txt") for file in folder.glob(pattern))
    if len(files) > _MOST_REFERENCES:
        raise ValueError(f"references holds {len(files)} texts; at most {_MOST_REFERENCES} are read")
    for file in files:
        _check_inside(file, root)
    return [f"## references/{file.name}\n\n{decode(read_bounded(file, MAX_FILE_BYTES)).strip()}" for file in files]


def _check_inside(file: Path, root: Path) -> None:
    if not stays_inside(file, root):
        raise ValueError(f"{file.name} is reached by a link that leads out of {root}")


def write_agent_skills(skills: Iterable[Skill], folder: Path) -> Path:
    """Writes skills in the convention; :func:`read_agent_skills` reads them back equal.

    Args:
        skills: What to write.
        folder: Made; must be empty or not there.

    Raises:
        SkillFileError: The folder holds something, or a description is longer than the convention allows.
    """
    new_folder(folder)
    names: list[str] = []
    for skill in skills:
        if len(skill.description) > _LONGEST_DESCRIPTION:
            raise SkillFileError(
                f"The description of {skill.name!r} has {len(skill.description):,} characters; the convention allows "
                f"{_LONGEST_DESCRIPTION:,}"
            )
        names.append(unique(plain_name(skill.name), names))
        metadata = {} if skill.is_general else {"task_types": ", ".join(skill.task_types)}
        if names[-1] != skill.name:
            metadata["library_name"] = skill.name
        if skill.minimal:
            metadata["minimal"] = skill.minimal
        fields: dict[str, str | dict[str, str]] = {"name": names[-1], "description": skill.description}
        skill_file(folder / names[-1], fields | ({"metadata": metadata} if metadata else {}), skill.text)
    return folder


FORMATS = (
    SkillFormat("agent-skills", read=read_agent_skills, write=write_agent_skills, folder=True),
    SkillFormat("library", read=read_agent_skills, write=write_library, folder=True),  # it reads either form
)
