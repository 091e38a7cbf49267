"""One text with a section per skill, as Skill0's releases have it: a line ``### NAME ###``, then what is read."""

from __future__ import annotations

import re
from collections.abc import Iterable

from skill_library.errors import SkillFileError
from skill_library.formats.form import SkillFormat, check_count, check_size, plain_name, require_text, unique
from skill_library.skill import EVERY_TYPE, Skill

# Blanks are tried from the beginning of their run alone: a line of them would take quadratic time otherwise.
_HEAD = re.compile(r"^###[ \t]++(\S.*?)(?<![ \t])[ \t]++###[ \t]*+$", re.MULTILINE)
_GENERAL = re.compile(r"general|common", re.IGNORECASE)


def read_sections(text: str) -> list[Skill]:
    """Reads a text, one skill and task type per section; SkillFileError if no section has a text.

    Sections whose name begins with "general" or "common", and a text before the first section, are general skills.
    """
    beginning, *parts = _HEAD.split(text.replace("\r\n", "\n").replace("\r", "\n"))
    sections = list(zip(parts[::2], parts[1::2], strict=True))
    check_count(len(sections), "The text")
    if beginning.strip() and sections:
        sections.insert(0, ("general", beginning))
    skills: list[Skill] = []
    for title, body in sections:
        if body.strip():
            name = unique(plain_name(title, "_"), [skill.name for skill in skills])
            kind = EVERY_TYPE if _GENERAL.match(title) else title
            skills.append(Skill(name, f"The section {title}.", (kind,), body.strip()))
    if not skills:
        raise SkillFileError("The text has no section; expected lines '### NAME ###' with a skill below each")
    check_size(skills, "The text")
    return skills


def to_sections(skills: Iterable[Skill]) -> str:
    """Writes skills as sections: general ones under ``general ...``, others under their type.

    SkillFileError for none, for a text with a line that looks like a section's, and for a skill that serves several
    types, or one whose section would be read as general or under another name.
    """
    parts = []
    for skill in skills:
        require_text(skill)
        kind = skill.task_types[0]
        misread = not skill.is_general and (_GENERAL.match(kind) or kind != kind.strip())
        if _HEAD.search(skill.text) or len(skill.task_types) > 1 or misread:
            raise SkillFileError(
                f"{skill.name!r} has a line '### ... ###', several task types, or one that begins with 'general', "
                "'common' or a blank, or ends with one, which sections cannot tell; write folders instead"
            )
        title = (
            kind if not skill.is_general else (skill.name if _GENERAL.match(skill.name) else f"general {skill.name}")
        )
        parts.append(f"### {title} ###\n{skill.text}\n")
    if not parts:
        raise SkillFileError("There are no skills to write; sections need at least one")
    return "\n".join(parts)


FORMAT = SkillFormat("sections", read=read_sections, write=to_sections, suffixes=("",))
