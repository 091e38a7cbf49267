"""Plans after failures, and the gathering of experience on training tasks before anything is evaluated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from skill_library import SkillText
from skillc_gym.episodes import Episode
from skillc_lab.agents.base import ActingWriter, AgentTools, WritingAgent
from trainers.base import Count, Natural
from trainers.retrieval import nearest, similarity
from trainers.rollout import panel_of
from trainers.writers import AgentWriter

_SHOWN_PLANS = 3
_T = TypeVar("_T")


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
        return SkillText(f"reflection-{len(plans)}", text)

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

    tasks_per_type: Count = 4
    retries: Natural = 2
    embeddings: str | None = None


class ActingGatherer(ActingWriter):
    """An agent at work that learns from what it played of the training tasks."""

    options: GatheringAgent

    def __init__(self, options: GatheringAgent, tools: AgentTools) -> None:
        super().__init__(options, tools)
        self.played: list[Episode] = []
        self._similarity = similarity(options.embeddings)

    def gather(self) -> None:
        """Plays training tasks, and those that failed again with a plan; all episodes by trial, then by task."""
        reflections = Reflections(self.writer, _SHOWN_PLANS)
        tasks = panel_of(self.tools.training_tasks(), self.options.tasks_per_type, self.tools.seed)
        for attempt in range(1 + self.options.retries):
            episodes = self.tools.play(tasks, reflections.choose, attempt) if tasks else []
            self.played += episodes
            failed = [episode for episode in episodes if not episode.won]
            tasks = tuple(episode.task_id for episode in failed)
            if attempt < self.options.retries:
                reflections.write(failed)

    def figures(self) -> dict[str, Any]:
        """How much was played and won, beside what the writer cost."""
        won = sum(bool(episode.won) for episode in self.played)
        return {**super().figures(), "gathered": {"episodes": len(self.played), "won": won}}

    def nearest(self, query: str, known: Sequence[_T], text_of: Callable[[_T], str], count: int) -> list[_T]:
        """Those whose texts are most like a query."""
        return [known[place] for place in nearest(self._similarity, query, list(map(text_of, known)), count)]
