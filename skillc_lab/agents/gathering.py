"""Gathering experience on training tasks, before anything is evaluated."""

from __future__ import annotations

from dataclasses import dataclass

from skillc_gym.episodes import Episode
from skillc_lab.agents.base import AgentTools, WritingAgent, at_least
from skillc_lab.agents.reflections import Reflections
from trainers.rollout.task_sampling import panel_of
from trainers.writers import AgentWriter

__all__ = ["GatheringAgent", "gather"]

_SHOWN_PLANS = 3


@dataclass(frozen=True)
class GatheringAgent(WritingAgent):
    """Options of the agents that learn from training tasks.

    Attributes:
        tasks_per_type: Training tasks of each type that are played.
        retries: Further tries at a task that failed, each with a plan written after the failure.
        embeddings: A sentence encoder for likeness, by folder or name; BM25 if None.
    """

    tasks_per_type: int = 4
    retries: int = 2
    embeddings: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, tasks_per_type=self.tasks_per_type)
        at_least(0, retries=self.retries)


def gather(options: GatheringAgent, tools: AgentTools, writer: AgentWriter) -> list[Episode]:
    """Plays training tasks, and those that failed again, with a plan.

    Returns:
        All episodes by trial, then by task.
    """
    reflections = Reflections(writer, _SHOWN_PLANS)
    tasks = panel_of(tools.training_tasks(), options.tasks_per_type, tools.seed)
    played: list[Episode] = []
    for attempt in range(1 + options.retries):
        episodes = tools.play(tasks, reflections.choose, attempt) if tasks else []
        played += episodes
        failed = [episode for episode in episodes if not episode.won]
        tasks = tuple(episode.task_id for episode in failed)
        if attempt < options.retries:
            reflections.write(failed)
    return played
