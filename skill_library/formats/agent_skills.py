"""Folders with a SKILL.md in each, as the specification (agentskills.io) has them, and this project's own are."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from skill_library.errors import SkillFileError
from skill_library.formats.form import SkillFormat, check_count, check_size, plain_name, unique
from skill_library.front_matter import FrontMatter
from skill_library.loader import MAX_FILE_BYTES, check_inside, decode, read_bounded, read_skill, skill_files
from skill_library.skill import SKILL_FILE, Skill, SkillLibrary

_LONGEST_DESCRIPTION = 1024


def write_library(skills: Iterable[Skill], folder: Path) -> Path:
    """Writes a library into a folder that is not there or empty, to be read back equal; else SkillFileError.

    What the specification has no field for stands under ``metadata``, as :func:`skill_library.loader.read_skill` tells.
    """
    listed = SkillLibrary(folder.name, tuple(skills)).skills
    check_count(len(listed), f"The library {folder.name!r}")
    contents: dict[str, bytes] = {}
    for skill in listed:
        name = unique(plain_name(skill.name), contents)
        contents[name] = _content(skill, name)
    if folder.is_dir() and any(folder.iterdir()):
        raise SkillFileError(f"{folder} is not empty; name another folder, so that nothing is overwritten")
    made: list[Path] = []  # what another process writes meanwhile is its own
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            (folder / name).mkdir()
            made.append(folder / name)
            (folder / name / SKILL_FILE).write_bytes(content)
    except OSError as error:
        for place in made:
            shutil.rmtree(place, ignore_errors=True)
        raise SkillFileError(f"The folder {folder} cannot be made ({error.strerror}); name another one") from error
    return folder


def _content(skill: Skill, folder: str) -> bytes:
    """The skill's file in a folder of that name; SkillFileError where it would be refused when it is read."""
    if not skill.description.strip() or len(skill.description) > _LONGEST_DESCRIPTION:
        raise SkillFileError(
            f"The description of {skill.name!r} has {len(skill.description):,} characters; the specification of skills "
            f"wants 1 to {_LONGEST_DESCRIPTION:,}"
        )
    texts = (skill.text, skill.description, skill.minimal, *skill.task_types)
    if not skill.text or any(text != text.strip() for text in texts):
        raise SkillFileError(
            f"{skill.name!r} has no text, or white space around its texts, description or task types: it would not be "
            "read back equal"
        )
    metadata = {
        "library_name": "" if skill.name == folder else skill.name,
        "task_types": "" if skill.is_general else ", ".join(skill.task_types),
        "minimal": skill.minimal,
    }
    ours = [f"  {name}: {_yaml(value)}" for name, value in metadata.items() if value]
    fields = [f"name: {_yaml(folder)}", f"description: {_yaml(skill.description)}"]
    front = "\n".join([*fields, "metadata:", *ours] if ours else fields)
    content = f"---\n{front}\n---\n{skill.text}\n".encode()
    try:
        FrontMatter(front)
        if len(content) > MAX_FILE_BYTES:
            raise ValueError(f"it would be longer than the {MAX_FILE_BYTES:,} bytes allowed")
    except ValueError as error:
        raise SkillFileError(
            f"The {SKILL_FILE} of {skill.name!r} could not be read back: {error}; shorten it"
        ) from None
    return content


def _yaml(text: str) -> str:
    """JSON, which YAML reads too; what ends a line in YAML or is refused is escaped, as is a fence of the file."""
    plain = json.dumps(text, ensure_ascii=False).replace("---", "--\\u002d")
    return re.sub("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]", lambda found: f"\\u{ord(found[0]):04x}", plain)


_MOST_REFERENCES = 100


def read_agent_skills(folder: Path, *, references: bool = False) -> list[Skill]:
    """Reads the skills below a folder, or the one that the folder is; SkillFileError names a file that is none.

    ``references`` puts the text files of that folder behind the skill's text: an agent here has no tool to open them.
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
    return [text for file in files if (text := _reference(file, root))]


def _reference(file: Path, root: Path) -> str:
    """The text with its heading; "" of a file without one."""
    check_inside(file, root)
    try:
        text = decode(read_bounded(file, MAX_FILE_BYTES)).strip()
    except (OSError, ValueError) as error:
        raise SkillFileError(f"{file}: {error}") from error
    return f"## references/{file.name}\n\n{text}" if text else ""


FORMATS = tuple(
    SkillFormat(name, read=read_agent_skills, write=write_library, folder=True) for name in ("agent-skills", "library")
)
"""One form under two names: a library of this project's is one of the specification's."""
