"""Mem0 (Chhikara et al., arXiv 2504.19413): facts extracted from experience, in a memory that edits itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from skill_library import SkillText
from skillc_gym.episodes import Episode
from skillc_lab.agents.base import ActingAgent, AgentTools, at_least, note
from skillc_lab.agents.gathering import GatheringAgent, gather
from trainers.memory import Entry, SkillBank
from trainers.retrieval import nearest, similarity
from trainers.writers import Draft


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
    retries: int = 0
    similar: int = 5
    shown: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, similar=self.similar, shown=self.shown)

    def start(self, tools: AgentTools) -> _Mem0:
        """With an empty memory."""
        return _Mem0(self, tools)


class _Mem0(ActingAgent):
    options: Mem0

    def __init__(self, options: Mem0, tools: AgentTools) -> None:
        self._writer = options.new_writer(tools)
        super().__init__(options, self._writer)
        self._tools = tools
        self._similarity = similarity(options.embeddings)
        self._bank = SkillBank()
        self._operations: Counter[str] = Counter()
        self._gathered: Counter[str] = Counter()

    def prepare(self) -> None:
        for number, episode in enumerate(gather(self.options, self._tools, self._writer)):
            self._gathered.update(episodes=1, won=int(bool(episode.won)))
            for fact in self._writer.facts(episode):
                self._remember(fact, episode, number)

    def choose(self, info: Mapping[str, Any]) -> SkillText | None:
        query = info.get("goal") or info["task_type"]
        shown = self._nearest(query, [f"{entry.key} {entry.text}" for entry in self._bank], self.options.shown)
        text = "\n".join(["Facts from earlier tasks:", *(f"- {entry.text}" for entry in shown)])
        return note("+".join(entry.name for entry in shown), text) if shown else None

    def state_dict(self) -> dict[str, Any]:
        return self._bank.state_dict()

    def figures(self) -> dict[str, Any]:
        operations = {name: self._operations[name] for name in ("ADD", "UPDATE", "DELETE", "NOOP")}
        gathered = {name: self._gathered[name] for name in ("episodes", "won")}
        return {**super().figures(), "gathered": gathered, "operations": operations, "facts": len(self._bank)}

    def _remember(self, fact: str, episode: Episode, number: int) -> None:
        similar = self._nearest(fact, [entry.text for entry in self._bank], self.options.similar)
        decision = self._writer.decide(fact, [entry.text for entry in similar])
        self._operations[decision.operation] += 1
        if decision.operation == "ADD":
            self._bank.add(self._draft(fact, episode), number)
        elif decision.operation == "UPDATE":
            self._bank.replace_text(similar[decision.number - 1].name, decision.text)
        elif decision.operation == "DELETE":
            self._bank.remove(similar[decision.number - 1].name)

    def _draft(self, fact: str, episode: Episode) -> Draft:
        return Draft(fact, episode.goal, episode.task_type, "principle", self._writer.name, (episode.task_id,))

    def _nearest(self, query: str, texts: list[str], count: int) -> list[Entry]:
        entries = list(self._bank)
        return [entries[place] for place in nearest(self._similarity, query, texts, count)]


AGENT = Mem0()
