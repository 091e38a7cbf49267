"""ReAct (Yao et al., arXiv 2210.03629): examples of thoughts and actions in front of the task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from skill_library import SkillText
from skillc_gym.episodes import Episode
from skillc_gym.panels import tasks_by_type
from skillc_lab.agents.base import ActingAgent, Agent, AgentTools
from skillc_lab.agents.shown import demonstrated, examples_text
from trainers.base import Count
from trainers.rollout import panel_of

_DRAWN = 3
"""Demonstrations per example; the shortest are taken."""


class _ReAct(ActingAgent):
    options: ReAct

    def __init__(self, options: ReAct, tools: AgentTools) -> None:
        super().__init__(options, tools)
        self._shown: dict[str, list[Episode]] = {}

    def prepare(self) -> None:
        tools = self.tools
        types = tools.training_tasks()
        drawn = panel_of(types, _DRAWN * self.options.examples, tools.seed)
        for kind, tasks in tasks_by_type({task: types[task] for task in drawn}).items():
            won = [episode for episode in demonstrated(tools.spec, tools.make_env, tasks) if episode.won]
            won.sort(key=lambda episode: (len(episode), episode.task_id))
            self._shown[kind] = won[: self.options.examples]

    def choose(self, info: Mapping[str, Any]) -> SkillText | None:
        shown = self._shown.get(info["task_type"], [])
        return SkillText("react", examples_text(shown)) if shown else None

    def state_dict(self) -> dict[str, Any]:
        return {"examples": {kind: [episode.to_dict() for episode in shown] for kind, shown in self._shown.items()}}

    def figures(self) -> dict[str, Any]:
        return {"examples": {kind: [episode.task_id for episode in shown] for kind, shown in self._shown.items()}}


@dataclass(frozen=True)
class ReAct(Agent):
    """Shows episodes of the environment's expert on training tasks of the same type.

    The paper's examples are written by hand, two per type in ALFWorld and one in WebShop.

    Attributes:
        examples: Episodes shown.
    """

    name: ClassVar[str] = "react"
    acting = _ReAct
    examples: Count = 2


AGENT = ReAct()
