"""Plans after failures, and the gathering of experience on training tasks before anything is evaluated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skill_library import SkillText
from skillc_gym.episodes import Episode
from skillc_lab.agents.base import AgentTools, WritingAgent, at_least, note
from trainers.rollout import panel_of
from trainers.writers import AgentWriter

_SHOWN_PLANS = 3


class Reflections:
    """The plans of every task and condition, the oldest first; a try is shown the latest few."""

    def __init__(self, writer: AgentWriter, shown: int) -> None:
        self._writer, self._shown = writer, shown
        self._plans: dict[str, list[str]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._plans.values()))

    def write(self, failed: Sequence[Episode]) -> None:
        """Writes a plan for each failed episode; where that fails, the next try has the earlier ones alone."""
        earlier = [tuple(self._plans.get(_key(vars(episode)), ())) for episode in failed]
        for episode, plan in zip(failed, self._writer.reflect(failed, earlier) if failed else (), strict=True):
            if plan is not None:
                self._plans.setdefault(_key(vars(episode)), []).append(plan)

    def choose(self, info: Mapping[str, Any]) -> SkillText | None:
        """The latest plans for a task in its condition."""
        plans = self._plans.get(_key(info), [])
        if not plans:
            return None
        text = "\n\n".join(["Plans from earlier tries at this task:", *plans[-self._shown :]])
        return note(f"reflection-{len(plans)}", text)

    def state_dict(self) -> dict[str, Any]:
        """The plans by condition and task."""
        return {"plans": {key: list(plans) for key, plans in self._plans.items()}}


def _key(values: Mapping[str, Any]) -> str:
    return f"{int(values.get('condition', 0))} {values['task_id']}"


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
    """Plays training tasks, and those that failed again with a plan; all episodes by trial, then by task."""
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
