"""Wrappers: the skill switch, the curriculum, the reply's format, the chat prompt; and views for other agents."""

from skillc_gym.wrappers.action_format import ActionFormat, ParsedReply, format_reply, parse_reply
from skillc_gym.wrappers.curricula import SkillCurriculum
from skillc_gym.wrappers.prompt import ChatPrompt
from skillc_gym.wrappers.skill_injection import SkillInjection
from skillc_gym.wrappers.stack import find_wrapper
from skillc_gym.wrappers.views import DiscreteCommands, TextHistory, WordPresence

__all__ = [
    "ActionFormat",
    "ChatPrompt",
    "DiscreteCommands",
    "ParsedReply",
    "SkillCurriculum",
    "SkillInjection",
    "TextHistory",
    "WordPresence",
    "find_wrapper",
    "format_reply",
    "parse_reply",
]
