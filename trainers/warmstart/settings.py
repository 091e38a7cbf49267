"""The training settings that fit a small policy in its world: the demonstration's, and those of studies."""

from __future__ import annotations

from typing import Any

from skillc_gym.envs.registry import warm_started

__all__ = ["small_policy_settings"]


def small_policy_settings(env: str, data: str | None = "generated") -> dict[str, Any]:
    """Fields of :class:`trainers.config.TrainConfig` for a small policy; the policy, the method and the seed are left.

    Args:
        env: The environment.
        data: "generated", or its folder or archive; None leaves it to the environment.

    Raises:
        UnknownNameError: Nobody demonstrates in the environment.
    """
    spec, start = warm_started(env)
    compact = spec.chat.get("compact")
    return {
        "env": env,
        "data": data,
        "chat": "compact",
        "chat_options": {"role": compact.role} if compact else {},
        "draw": "types",
        "max_context": 2048,
        "max_reply_tokens": start.demo.max_reply_tokens,
        # About 2,000 tokens a pass: on a processor, what fits into its cache is a fifth faster.
        "micro_batches": 16,
        "learning_rate": 3e-4,
        "adam_beta2": 0.98,
        "beta": 0.0,
        "validate_every": 5,
        "save_every": 5,
        "panel_per_type": start.demo.panel_per_type,
        **_tasks(env, data),
    }


def _tasks(env: str, data: str | None) -> dict[str, Any]:
    """What depends on whether the tasks are generated."""
    start = warm_started(env)[1]
    if data != "generated":
        return {"max_episode_steps": start.demo.max_episode_steps_of_data}
    return {
        "max_episode_steps": start.demo.max_episode_steps,
        "preset_options": dict(start.demo.preset_options),
        "env_options": {"generator": dict(start.generator)},
    }
