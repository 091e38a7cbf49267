"""What one update is summarised to in ``metrics.jsonl``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainers.rollout.collect import Rollout

__all__ = ["EpisodeSummary", "summarise", "train_record"]


@dataclass(frozen=True)
class EpisodeSummary:
    """The figures of an episode: what the method and the log need of it, small enough to send between processes."""

    group: int
    task_id: str
    task_type: str
    condition: int
    won: float
    task_score: float
    turns: range
    format_valid: int
    action_valid: int
    truncated: bool
    cut: str
    model_tokens: int


def summarise(rollout: Rollout) -> EpisodeSummary:
    """The figures of one rollout."""
    episode = rollout.episode
    return EpisodeSummary(
        group=rollout.group,
        task_id=episode.task_id,
        task_type=episode.task_type,
        condition=episode.condition,
        won=episode.won,
        task_score=episode.task_score,
        turns=range(len(episode.turns)),
        format_valid=sum(turn.format_valid for turn in episode.turns),
        action_valid=sum(turn.action_valid for turn in episode.turns),
        truncated=episode.truncated,
        cut=episode.cut,
        model_tokens=rollout.model_tokens,
    )


def train_record(episodes: Sequence[EpisodeSummary], diagnostics: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of an update's rollouts, with the method's own diagnostics.

    Args:
        episodes: Of all processes.
        diagnostics: What the method says of its advantages and of its state.
    """
    turns = max(1, sum(len(episode.turns) for episode in episodes))
    with_, without = ([e for e in episodes if e.condition == c] for c in (1, 0))
    return {
        **{key: value for key, value in diagnostics.items() if key != "streams"},
        "success": _mean(episodes, lambda e: e.won),
        "success_with": _mean(with_, lambda e: e.won),
        "success_without": _mean(without, lambda e: e.won),
        "success_by_type": {
            kind: _mean([e for e in episodes if e.task_type == kind], lambda e: e.won)
            for kind in sorted({e.task_type for e in episodes})
        },
        "return_mean": _mean(episodes, lambda e: e.task_score),
        "episode_length": _mean(episodes, lambda e: len(e.turns)),
        "episode_length_with": _mean(with_, lambda e: len(e.turns)),
        "episode_length_without": _mean(without, lambda e: len(e.turns)),
        "truncated": _mean(episodes, lambda e: e.truncated),
        "cut_by_context": _mean(episodes, lambda e: e.cut == "context"),
        "cut_by_context_with": _mean(with_, lambda e: e.cut == "context"),
        "cut_by_context_without": _mean(without, lambda e: e.cut == "context"),
        "format_valid": sum(e.format_valid for e in episodes) / turns,
        "action_valid": sum(e.action_valid for e in episodes) / turns,
        "tokens_generated": sum(e.model_tokens for e in episodes),
        "env_steps": sum(len(e.turns) for e in episodes),
        "tasks": sorted({e.task_id for e in episodes}),
    }


def _mean(episodes: Sequence[EpisodeSummary], figure: Callable[[EpisodeSummary], float]) -> float | None:
    return sum(float(figure(episode)) for episode in episodes) / len(episodes) if episodes else None
