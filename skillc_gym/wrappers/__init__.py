"""Wrappers: the skill switch, the curriculum, the reply's format, the chat prompt; and views for other agents."""

import importlib
from typing import Any

from skillc_gym.wrappers.action_format import ActionFormat, ParsedReply, format_reply, parse_reply
from skillc_gym.wrappers.discrete import DiscreteCommands
from skillc_gym.wrappers.history import TextHistory
from skillc_gym.wrappers.procedural import ProceduralCurriculum
from skillc_gym.wrappers.prompt import ChatPrompt
from skillc_gym.wrappers.skill_curriculum import SkillCurriculum
from skillc_gym.wrappers.skill_injection import SkillInjection
from skillc_gym.wrappers.stack import find_wrapper
from skillc_gym.wrappers.type_statistics import TypeStatistics
from skillc_gym.wrappers.word_presence import WordPresence

__all__ = [
    "ActionFormat",
    "ChatPrompt",
    "DiscreteCommands",
    "ParsedReply",
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

_ELSEWHERE = {"PlanShaping": "skillc_gym.envs.alfworld.shaping"}
"""Wrappers that belong to one environment, and the module of each; imported when asked for."""


def __getattr__(name: str) -> Any:
    if name not in _ELSEWHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_ELSEWHERE[name]), name)
