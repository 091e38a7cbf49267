"""ExpeL (Zhao et al., arXiv 2308.10144): rules from training tasks, and the nearest successes as examples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from skill_library import SkillText
from skillc_gym.episodes import Episode
from skillc_lab.agents.base import ActingAgent, AgentTools, at_least, note
from skillc_lab.agents.examples import examples_text
from skillc_lab.agents.gathering import GatheringAgent, gather
from trainers.memory.retrieval import nearest, similarity
from trainers.memory.rules import RuleList

__all__ = ["AGENT", "ExpeL"]


@dataclass(frozen=True)
class ExpeL(GatheringAgent):
    """Gathers tries at training tasks, lets a writer edit a list of rules, and plays each task once.

    Attributes:
        capacity: Most rules.
        together: Successes that the writer looks at together.
        examples: Nearest successes that an episode is shown.
    """

    name: ClassVar[str] = "expel"
    capacity: int = 20
    together: int = 8
    examples: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, capacity=self.capacity, together=self.together)
        at_least(0, examples=self.examples)

    def start(self, tools: AgentTools) -> _ExpeL:
        """Without a rule yet."""
        return _ExpeL(self, tools)


class _ExpeL(ActingAgent):
    options: ExpeL

    def __init__(self, options: ExpeL, tools: AgentTools) -> None:
        self._writer = options.new_writer(tools)
        super().__init__(options, self._writer)
        self._tools = tools
        self._similarity = similarity(options.embeddings)
        self._rules = RuleList(options.capacity)
        self._won: list[Episode] = []
        self._played = 0

    def prepare(self) -> None:
        played = gather(self.options, self._tools, self._writer)
        self._played = len(played)
        self._won = sorted((episode for episode in played if episode.won), key=lambda episode: episode.task_id)
        for episodes in self._lessons(played):
            self._rules.apply(self._writer.edit(self._rules.texts, episodes))

    def choose(self, info: Mapping[str, Any]) -> SkillText | None:
        rules = [f"{number}. {text}" for number, text in enumerate(self._rules.texts, 1)]
        texts = ["\n".join(["Rules from earlier tasks:", *rules]) if rules else "", examples_text(self._nearest(info))]
        text = "\n\n".join(filter(None, texts))
        return note("expel", text) if text else None

    def state_dict(self) -> dict[str, Any]:
        strengths = dict(zip(self._rules.texts, self._rules.strengths, strict=True))
        return {"rules": strengths, "successes": [episode.to_dict() for episode in self._won]}

    def figures(self) -> dict[str, Any]:
        gathered = {"episodes": self._played, "won": len(self._won)}
        return {**super().figures(), "gathered": gathered, "rules": len(self._rules.texts)}

    def _nearest(self, info: Mapping[str, Any]) -> list[Episode]:
        goals = [episode.goal or episode.task_type for episode in self._won]
        query = info.get("goal") or info["task_type"]
        return [self._won[place] for place in nearest(self._similarity, query, goals, self.options.examples)]

    def _lessons(self, played: Sequence[Episode]) -> Iterator[list[Episode]]:
        """A failure and the success at the same task; then successes, so many at once."""
        won = {episode.task_id: episode for episode in self._won}
        for failed in played:
            if not failed.won and failed.task_id in won:
                yield [failed, won[failed.task_id]]
        for start in range(0, len(self._won), self.options.together):
            yield self._won[start : start + self.options.together]


AGENT = ExpeL()
