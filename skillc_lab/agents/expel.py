"""ExpeL (Zhao et al., arXiv 2308.10144): rules from training tasks, and the nearest successes as examples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from skill_library import SkillText
from skillc_gym.episodes import Episode
from skillc_lab.agents.base import AgentTools
from skillc_lab.agents.gathering import ActingGatherer, GatheringAgent
from skillc_lab.agents.shown import examples_text
from trainers.base import Count, Natural
from trainers.writers import Edit

_START, _FULL_REMOVAL = 2, 3


class RuleList:
    """Rules with a strength: ADD starts at 2, AGREE and EDIT add 1, REMOVE takes 1 (3 of a full list); 0 is gone.

    A full list takes no new rule.
    """

    def __init__(self, capacity: int = 20) -> None:
        self.capacity = capacity
        self._rules: list[tuple[str, int]] = []

    @property
    def texts(self) -> tuple[str, ...]:
        """The rules, the strongest first, older ones before newer ones of the same strength."""
        return tuple(text for text, _ in self._rules)

    @property
    def strengths(self) -> tuple[int, ...]:
        """Their strengths, in the same order."""
        return tuple(strength for _, strength in self._rules)

    def apply(self, edits: Iterable[Edit]) -> None:
        """Applies edits whose numbers mean the list as it is now."""
        numbered: list[tuple[str, int]] = list(self._rules)
        full = len(numbered) >= self.capacity
        for edit in edits:
            if edit.rule is None:
                if len(numbered) < self.capacity and edit.text not in [text for text, _ in numbered]:
                    numbered.append((edit.text, _START))
                continue
            text, strength = numbered[edit.rule - 1]
            if edit.kind == "EDIT" and edit.text != text and edit.text in [known for known, _ in numbered]:
                continue
            change = -(_FULL_REMOVAL if full else 1) if edit.kind == "REMOVE" else 1
            numbered[edit.rule - 1] = (edit.text if edit.kind == "EDIT" else text, strength + change)
        self._rules = sorted((rule for rule in numbered if rule[1] > 0), key=lambda rule: -rule[1])


class _ExpeL(ActingGatherer):
    options: ExpeL

    def __init__(self, options: ExpeL, tools: AgentTools) -> None:
        super().__init__(options, tools)
        self._rules = RuleList(options.capacity)
        self._won: list[Episode] = []

    def prepare(self) -> None:
        self.gather()
        self._won = sorted((episode for episode in self.played if episode.won), key=lambda episode: episode.task_id)
        for episodes in self._lessons():
            self._rules.apply(self.writer.edit(self._rules.texts, episodes))

    def choose(self, info: Mapping[str, Any]) -> SkillText | None:
        rules = [f"{number}. {text}" for number, text in enumerate(self._rules.texts, 1)]
        ruled = "\n".join(["Rules from earlier tasks:", *rules]) if rules else ""
        query = info.get("goal") or info["task_type"]
        near = self.nearest(query, self._won, lambda won: won.goal or won.task_type, self.options.examples)
        text = "\n\n".join(filter(None, [ruled, examples_text(near)]))
        return SkillText("expel", text) if text else None

    def state_dict(self) -> dict[str, Any]:
        strengths = dict(zip(self._rules.texts, self._rules.strengths, strict=True))
        return {"rules": strengths, "successes": [episode.to_dict() for episode in self._won]}

    def figures(self) -> dict[str, Any]:
        return {**super().figures(), "rules": len(self._rules.texts)}

    def _lessons(self) -> Iterator[list[Episode]]:
        """A failure and the success at the same task; then successes, so many at once."""
        won = {episode.task_id: episode for episode in self._won}
        for failed in self.played:
            if not failed.won and failed.task_id in won:
                yield [failed, won[failed.task_id]]
        for start in range(0, len(self._won), self.options.together):
            yield self._won[start : start + self.options.together]


@dataclass(frozen=True)
class ExpeL(GatheringAgent):
    """Gathers tries at training tasks, lets a writer edit a list of rules, and plays each task once.

    Attributes:
        capacity: Most rules.
        together: Successes that the writer looks at together.
        examples: Nearest successes that an episode is shown.
    """

    name: ClassVar[str] = "expel"
    acting = _ExpeL
    capacity: Count = 20
    together: Count = 8
    examples: Natural = 2


AGENT = ExpeL()
