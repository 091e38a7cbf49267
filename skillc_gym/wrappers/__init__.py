"""Wrappers: the skill switch, the curriculum, the reply's format, the chat prompt; and views for other agents."""

from skillc_gym.wrappers.action_format import ActionFormat, ParsedReply, format_reply, parse_reply
from skillc_gym.wrappers.curricula import ProceduralCurriculum, SkillCurriculum
from skillc_gym.wrappers.plan_shaping import PlanShaping
from skillc_gym.wrappers.prompt import ChatPrompt
from skillc_gym.wrappers.skill_injection import SkillInjection, find_wrapper
from skillc_gym.wrappers.views import DiscreteCommands, TextHistory, TypeStatistics, WordPresence

__all__ = [
    "ActionFormat",
    "ChatPrompt",
    "DiscreteCommands",
    "ParsedReply",
    "PlanShaping",
    "ProceduralCurriculum",
    "SkillCurriculum",
    "SkillInjection",
    "TextHistory",
    "TypeStatistics",
    "WordPresence",
    "find_wrapper",
    "format_reply",
    "parse_reply",
]
