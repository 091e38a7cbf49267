"""Skills as folders of text (SKILL.md), and their loader."""

from skill_library.errors import SkillCError, SkillFileError
from skill_library.loader import BUILT_IN, decode, library_folder, load_library, read_bounded
from skill_library.skill import EVERY_TYPE, GRADES, Skill, SkillLibrary, SkillText, fit_text

__all__ = [
    "BUILT_IN",
    "EVERY_TYPE",
    "GRADES",
    "Skill",
    "SkillCError",
    "SkillFileError",
    "SkillLibrary",
    "SkillText",
    "decode",
    "fit_text",
    "library_folder",
    "load_library",
    "read_bounded",
]
