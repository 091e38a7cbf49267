"""Skills as folders of text (SKILL.md), and their loader."""

from skill_library.errors import SkillCError, SkillFileError
from skill_library.loader import load_library
from skill_library.skill import GRADES, Skill, SkillLibrary, SkillText

__all__ = ["GRADES", "Skill", "SkillCError", "SkillFileError", "SkillLibrary", "SkillText", "load_library"]
