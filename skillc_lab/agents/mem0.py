"""Mem0 (Chhikara et al., arXiv 2504.19413): facts extracted from experience, in a memory that edits itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from skill_library import SkillText
from skillc_gym.episodes import Episode
from skillc_lab.agents.base import AgentTools
from skillc_lab.agents.gathering import ActingGatherer, GatheringAgent
from trainers.base import Count, Natural
from trainers.memory import SkillBank
from trainers.writers import Draft


class _Mem0(ActingGatherer):
    options: Mem0

    def __init__(self, options: Mem0, tools: AgentTools) -> None:
        super().__init__(options, tools)
        self._bank = SkillBank()
        self._operations: Counter[str] = Counter()

    def prepare(self) -> None:
        self.gather()
        for number, episode in enumerate(self.played):
            for fact in self.writer.facts(episode):
                self._remember(fact, episode, number)

    def choose(self, info: Mapping[str, Any]) -> SkillText | None:
        query = info.get("goal") or info["task_type"]
        shown = self.nearest(query, [*self._bank], lambda entry: f"{entry.key} {entry.text}", self.options.shown)
        text = "\n".join(["Facts from earlier tasks:", *(f"- {entry.text}" for entry in shown)])
        return SkillText("+".join(entry.name for entry in shown), text) if shown else None

    def state_dict(self) -> dict[str, Any]:
        return self._bank.state_dict()

    def figures(self) -> dict[str, Any]:
        operations = {name: self._operations[name] for name in ("ADD", "UPDATE", "DELETE", "NOOP")}
        return {**super().figures(), "operations": operations, "facts": len(self._bank)}

    def _remember(self, fact: str, episode: Episode, number: int) -> None:
        similar = self.nearest(fact, [*self._bank], lambda entry: entry.text, self.options.similar)
        decision = self.writer.decide(fact, [entry.text for entry in similar])
        self._operations[decision.operation] += 1
        if decision.operation == "ADD":
            tasks = (episode.task_id,)
            draft = Draft(fact, episode.goal, episode.task_type, "principle", self.writer.name, tasks)
            self._bank.add(draft, number)
        elif decision.operation == "UPDATE":
            self._bank.replace_text(similar[decision.number - 1].name, decision.text)
        elif decision.operation == "DELETE":
            self._bank.remove(similar[decision.number - 1].name)


@dataclass(frozen=True)
class Mem0(GatheringAgent):
    """Extracts facts from tries at training tasks, compares each with similar ones, and shows those like the goal.

    Published is the memory of a conversation, with an extraction after every exchange; how the field adapted it to
    ALFWorld and WebShop is not said. Here an exchange is an episode, and the memory does not change while tasks are
    evaluated.

    Attributes:
        similar: Facts that a new one is compared with.
        shown: Facts that an episode is shown.
    """

    name: ClassVar[str] = "mem0"
    acting = _Mem0
    retries: Natural = 0
    similar: Count = 5
    shown: Count = 5


AGENT = Mem0()
