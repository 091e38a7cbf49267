"""A trajectory: one episode together with the tokens that were trained on, as it travels through the learner."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from skillc_gym.chat import Message
from skillc_gym.episodes import Episode


@dataclass(frozen=True)
class TokenRow:
    """One sequence to train on. The three lists of the completion have one entry per token."""

    prompt_ids: list[int]
    """What came before the first reply."""
    completion_ids: list[int]
    """Replies and, between them, what the environment said."""
    loss_mask: list[int]
    """1 for the model's own tokens, 0 for the environment's."""
    logprobs: list[float]
    """Log-probabilities under which the model's tokens were drawn; 0 for the environment's."""
    reply_lengths: tuple[int, ...] = ()
    """Own tokens of each reply of the row, in order; they sum to :attr:`model_tokens`."""
    messages: Sequence[Message] = ()
    """The prompt in words, from which it can be rendered again with another skill text."""
    prompt_cut: bool = False
    """Whether its prompt was rendered again and lost its beginning, for it would have been too long."""
    allowed: tuple[tuple[int, ...], ...] = ()
    """Of each own token the tokens among which it was drawn, over which its probability is normalised; empty where it
    was drawn from the whole vocabulary."""

    @property
    def ids(self) -> list[int]:
        """All tokens."""
        return self.prompt_ids + self.completion_ids

    @property
    def length(self) -> int:
        """Tokens in all."""
        return len(self.prompt_ids) + len(self.completion_ids)

    @cached_property
    def model_tokens(self) -> int:
        """Tokens that carry loss."""
        return sum(self.loss_mask)

    @property
    def own_logprobs(self) -> list[float]:
        """Log-probabilities of the own tokens as they were drawn, in order."""
        return [value for value, own in zip(self.logprobs, self.loss_mask, strict=True) if own]


@dataclass
class Usage:
    """Sums over the replies of an episode: how many, tokens read, tokens written."""

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def count(self, prompt_tokens: int, completion_tokens: int) -> None:
        """Adds one reply."""
        self.requests += 1
        self.prompt_tokens += prompt_tokens
        self.completion_tokens += completion_tokens


@dataclass(frozen=True)
class Trajectory:
    """One episode, its training rows (one in the conversation form, one per turn in the window form), and its group.

    ``usage`` are the tokens that the policy read and wrote; ``seconds`` go from its first question to its end, beside
    all others that were played, and are None if it was recalled.
    """

    episode: Episode
    rows: list[TokenRow]
    group: int
    usage: Usage = field(default_factory=Usage)
    seconds: float | None = None

    @cached_property
    def model_tokens(self) -> int:
        """Tokens that the policy generated, all turns (T_i of the objective)."""
        return sum(row.model_tokens for row in self.rows)

    @property
    def reply_lengths(self) -> tuple[int, ...]:
        """Own tokens of each turn, in order."""
        return tuple(length for row in self.rows for length in row.reply_lengths)

    def own_rows(self) -> Iterator[tuple[TokenRow, slice]]:
        """Each row with the place of its own tokens among the trajectory's: the index of all figures per token."""
        start = 0
        for row in self.rows:
            yield row, slice(start, start + row.model_tokens)
            start += row.model_tokens


def rollout_metrics(trajectories: Sequence[Trajectory]) -> dict[str, Any]:
    """The figures of an update's rollouts in ``metrics.jsonl``; None where there is nothing to average."""
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
