"""Playing groups of episodes and turning them into rows of tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillc_gym.lazy import lazy_exports

if TYPE_CHECKING:
    from trainers.engines.random import derive_seed
    from trainers.rollout.collect import GroupRollouts
    from trainers.rollout.opening import (
        chat_format,
        chat_sha256,
        library_sha256,
        make_chat,
        make_prompts,
        make_rollouts,
        panel_of,
        require_split,
        tasks_of,
        token_policy,
    )
else:
    __getattr__, __dir__ = lazy_exports(__name__)

__all__ = ["GroupRollouts", "chat_format", "chat_sha256", "derive_seed"]
__all__ += ["library_sha256", "make_chat", "make_prompts", "make_rollouts", "panel_of", "require_split", "tasks_of"]
__all__ += ["token_policy"]
