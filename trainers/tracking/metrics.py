"""What one update's trajectories are summarised to in ``metrics.jsonl``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from skillc_gym.episodes import Episode
from trainers.base import Trajectory


def rollout_metrics(trajectories: Sequence[Trajectory]) -> dict[str, Any]:
    """The figures of an update's rollouts over all processes; None where there is nothing to average."""
    episodes = [trajectory.episode for trajectory in trajectories]
    turns = [turn for episode in episodes for turn in episode.turns]
    with_, without = ([episode for episode in episodes if episode.condition == c] for c in (1, 0))
    return {
        "success": _mean(episodes, lambda e: e.won),
        "success_with": _mean(with_, lambda e: e.won),
        "success_without": _mean(without, lambda e: e.won),
        "success_by_type": {
            kind: _mean([e for e in episodes if e.task_type == kind], lambda e: e.won)
            for kind in sorted({e.task_type for e in episodes})
        },
        # Of the task's score, whichever returns are maximised.
        "return_mean": _mean(episodes, lambda e: e.task_score),
        "episode_length": _mean(episodes, len),
        "episode_length_with": _mean(with_, len),
        "episode_length_without": _mean(without, len),
        "truncated": _mean(episodes, lambda e: e.truncated),
        "cut_by_context": _mean(episodes, lambda e: e.cut == "context"),
        "cut_by_context_with": _mean(with_, lambda e: e.cut == "context"),
        "cut_by_context_without": _mean(without, lambda e: e.cut == "context"),
        "format_valid": sum(turn.format_valid for turn in turns) / max(1, len(turns)),
        "action_valid": sum(turn.action_valid for turn in turns) / max(1, len(turns)),
        "prompt_tokens": sum(row.length - row.model_tokens for each in trajectories for row in each.rows),
        "tokens_generated": sum(trajectory.model_tokens for trajectory in trajectories),
        "env_steps": len(turns),
        "tasks": sorted({episode.task_id for episode in episodes}),
    }


def _mean(episodes: Sequence[Episode], figure: Callable[[Episode], float]) -> float | None:
    return sum(float(figure(episode)) for episode in episodes) / len(episodes) if episodes else None
