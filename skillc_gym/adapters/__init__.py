"""The suite's episodes in the forms that other libraries ask for: one file per consumer, each imported by its module.

All of them are made from :class:`~skillc_gym.adapters.chat_env.ChatEnv`, one episode as a chat. This package imports
none of the consumers. Their pins clash, so a type checker meets none of them: classes and decorators of theirs are
untyped to it, and each adapter says so where it uses one.
"""

from skillc_gym.adapters.chat_env import ChatEnv, ChatStep, EpisodeRequest, paired_requests

__all__ = ["ChatEnv", "ChatStep", "EpisodeRequest", "paired_requests"]
