"""Gymnasium environments for language agents whose skills can be switched on and off per episode.

Importing the package registers its environments with Gymnasium (``skillc/ALFWorld-v0``, ``skillc/WebShop-v0``). What it
exports is imported when it is asked for: ``from skillc_gym import PairedVectorEnv, SkillInjection``.
"""

from typing import TYPE_CHECKING

from skillc_gym.envs.registry import EnvSpec, env_spec, env_specs, register, register_built_in
from skillc_gym.lazy import lazy_exports
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
    from skillc_gym.wrappers.curricula import ProceduralCurriculum, SkillCurriculum
    from skillc_gym.wrappers.prompt import ChatPrompt
    from skillc_gym.wrappers.skill_injection import SkillInjection
    from skillc_gym.wrappers.views import DiscreteCommands, TextHistory, TypeStatistics
else:
    __getattr__, __dir__ = lazy_exports(__name__)

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


register_built_in()
