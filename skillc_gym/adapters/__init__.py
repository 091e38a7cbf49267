"""The suite's episodes in the forms that other libraries ask for: one file per consumer, each imported by its module.

All of them are made from :class:`~skillc_gym.adapters.chat_env.ChatEnv`, one episode as a chat. This package imports
none of the consumers.
"""

from skillc_gym.adapters.chat_env import ChatEnv, ChatStep
from skillc_gym.adapters.requests import EpisodeRequest, paired_requests

__all__ = ["ChatEnv", "ChatStep", "EpisodeRequest", "paired_requests"]
