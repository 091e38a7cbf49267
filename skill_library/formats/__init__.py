"""Skills in the forms that others keep them in: read into :class:`~skill_library.Skill`, and written back."""

from skill_library.formats.agent_skills import read_agent_skills, write_library
from skill_library.formats.bank import read_bank, to_bank
from skill_library.formats.form import SkillFormat, assign_types, plain_name, unique
from skill_library.formats.sections import read_sections, to_sections

__all__ = [
    "SkillFormat",
    "assign_types",
    "plain_name",
    "read_agent_skills",
    "read_bank",
    "read_sections",
    "to_bank",
    "to_sections",
    "unique",
    "write_library",
]
