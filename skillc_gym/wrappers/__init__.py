"""Wrappers: the skill switch, the curriculum, the reply's format, the chat prompt."""

from skillc_gym.wrappers.action_format import ActionFormat, ParsedReply, format_reply, parse_reply
from skillc_gym.wrappers.prompt import ChatPrompt
from skillc_gym.wrappers.skill_curriculum import SkillCurriculum
from skillc_gym.wrappers.skill_injection import SkillInjection
from skillc_gym.wrappers.stack import find_wrapper

__all__ = [
    "ActionFormat",
    "ChatPrompt",
    "ParsedReply",
    "SkillCurriculum",
    "SkillInjection",
    "find_wrapper",
    "format_reply",
    "parse_reply",
]
