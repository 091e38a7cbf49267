"""Episodes as trajectories of ATIF, the Agent Trajectory Interchange Format (version 1.7, Harbor's RFC 0001)."""

from __future__ import annotations

from typing import Any

from skillc_gym.episodes.record import Episode, Turn
from skillc_gym.version import __version__


def to_atif(episode: Episode, model: str | None = None) -> dict[str, Any]:
    """An episode as a JSON-able trajectory.

    The first prompt is a system and a user step, each exchange an agent step: the reply verbatim, the executed command
    as a call of the tool ``act``, and what the environment said to it.

    Args:
        episode: What was recorded.
        model: Who played it, where that is known.

    Returns:
        The trajectory; task, condition, skill, hash, seed, group and outcome are in its ``extra``.
    """
    first = episode.turns[0].observation if episode.turns else episode.final_observation
    opening = episode.messages or [{"role": "user", "content": first}]
    steps: list[dict[str, Any]] = [
        {"source": "agent" if said["role"] == "assistant" else said["role"], "message": said["content"]}
        for said in opening
    ]
    heard = [turn.observation for turn in episode.turns[1:]] + [episode.final_observation]
    steps += [_exchange(number, turn, heard[number]) for number, turn in enumerate(episode.turns)]
    told = {name: value for name, value in episode.to_dict().items() if name not in _SHOWN}
    return {
        "schema_version": "ATIF-v1.7",
        "session_id": f"{episode.group_id}/{episode.task_id}/{episode.seed}/{episode.condition}",
        "agent": {"name": "skillc-gym", "version": __version__, **({"model_name": model} if model else {})},
        "steps": [{"step_id": number, **step} for number, step in enumerate(steps, 1)],
        "final_metrics": {"total_steps": len(steps)},
        "extra": {**told, "episode_return": episode.episode_return},
    }


def _exchange(number: int, turn: Turn, answer: str) -> dict[str, Any]:
    call = f"call-{number + 1}"
    return {
        "source": "agent",
        "message": turn.reply,
        "tool_calls": [{"tool_call_id": call, "function_name": "act", "arguments": {"command": turn.action}}],
        "observation": {"results": [{"source_call_id": call, "content": answer}]},
        "extra": {"format_valid": turn.format_valid, "action_valid": turn.action_valid, "reward": turn.reward},
    }


_SHOWN = ("turns", "messages", "final_observation")
"""Fields of an episode that stand in the steps."""
