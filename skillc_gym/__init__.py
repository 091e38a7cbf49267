"""Gymnasium environments for language agents whose skills can be switched on and off per episode.

Importing the package registers its environments with Gymnasium (``skillc/ALFWorld-v0``, ``skillc/WebShop-v0``). What it
exports is imported when it is asked for: ``from skillc_gym import PairedVectorEnv, SkillInjection``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from skillc_gym.envs.registry import EnvSpec, env_spec, env_specs, register, register_built_in
from skillc_gym.version import __version__

if TYPE_CHECKING:
    from skillc_gym.chat import ChatFormat
    from skillc_gym.curricula.difficulty import DifficultyCurriculum
    from skillc_gym.curricula.skills import InternalizationCurriculum
    from skillc_gym.envs.base import TextTaskEnv
    from skillc_gym.episodes import Episode, EpisodeRecorder, read_jsonl, write_jsonl
    from skillc_gym.spaces import Unicode
    from skillc_gym.testing import TextEnvContract, check_text_env
    from skillc_gym.vector.collect import FinishedGroup, collect
    from skillc_gym.vector.paired import PairedVectorEnv
    from skillc_gym.wrappers.action_format import ActionFormat, format_reply, parse_reply
    from skillc_gym.wrappers.discrete import DiscreteCommands
    from skillc_gym.wrappers.history import TextHistory
    from skillc_gym.wrappers.procedural import ProceduralCurriculum
    from skillc_gym.wrappers.prompt import ChatPrompt
    from skillc_gym.wrappers.skill_curriculum import SkillCurriculum
    from skillc_gym.wrappers.skill_injection import SkillInjection
    from skillc_gym.wrappers.type_statistics import TypeStatistics

__all__ = [
    "ALFWORLD_ID",
    "WEBSHOP_ID",
    "ActionFormat",
    "ChatFormat",
    "ChatPrompt",
    "DifficultyCurriculum",
    "DiscreteCommands",
    "EnvSpec",
    "Episode",
    "EpisodeRecorder",
    "FinishedGroup",
    "InternalizationCurriculum",
    "PairedVectorEnv",
    "ProceduralCurriculum",
    "SkillCurriculum",
    "SkillInjection",
    "TextEnvContract",
    "TextHistory",
    "TextTaskEnv",
    "TypeStatistics",
    "Unicode",
    "__version__",
    "check_text_env",
    "collect",
    "env_spec",
    "env_specs",
    "format_reply",
    "parse_reply",
    "read_jsonl",
    "register",
    "write_jsonl",
]

ALFWORLD_ID = "skillc/ALFWorld-v0"
WEBSHOP_ID = "skillc/WebShop-v0"

_HOMES = {
    "ActionFormat": "wrappers.action_format",
    "ChatFormat": "chat",
    "ChatPrompt": "wrappers.prompt",
    "DifficultyCurriculum": "curricula.difficulty",
    "DiscreteCommands": "wrappers.discrete",
    "Episode": "episodes",
    "EpisodeRecorder": "episodes",
    "FinishedGroup": "vector.collect",
    "InternalizationCurriculum": "curricula.skills",
    "PairedVectorEnv": "vector.paired",
    "ProceduralCurriculum": "wrappers.procedural",
    "SkillCurriculum": "wrappers.skill_curriculum",
    "SkillInjection": "wrappers.skill_injection",
    "TextEnvContract": "testing",
    "TextHistory": "wrappers.history",
    "TextTaskEnv": "envs.base",
    "TypeStatistics": "wrappers.type_statistics",
    "Unicode": "spaces",
    "check_text_env": "testing",
    "collect": "vector.collect",
    "format_reply": "wrappers.action_format",
    "parse_reply": "wrappers.action_format",
    "read_jsonl": "episodes",
    "write_jsonl": "episodes",
}
"""The module of every name that is imported when it is asked for."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})


register_built_in()
