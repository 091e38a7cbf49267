"""Skills as folders of text (SKILL.md), and their loader."""

from skill_library.errors import SkillCError, SkillFileError
from skill_library.loader import Skill, SkillLibrary, SkillText, load_library

__all__ = ["Skill", "SkillCError", "SkillFileError", "SkillLibrary", "SkillText", "load_library"]
