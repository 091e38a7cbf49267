"""SkillRL's memory (arXiv 2602.08234): a skill bank that grows where agents keep failing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from skillc_gym.episodes import Episode
from trainers.advantages import RolloutBatch
from trainers.memory.banked import BankMemory, BankOptions
from trainers.memory.base import MemoryTools
from trainers.memory.entries import Draft, Entry

__all__ = ["SkillRLMemory"]


@dataclass(frozen=True)
class SkillRLMemory(BankOptions):
    """Options of SkillRL's memory.

    The paper sends failures of *validation* tasks to its language model; here only training tasks teach.

    Attributes:
        review_every: Updates between two looks at the failures.
        reviewed_below: A task type is looked at if its success since the last look lies below this.
        most_episodes: Most failed episodes of a type that are looked at; as many won ones stand beside them.
        most_added: Most new skills per type and look.
    """

    name: ClassVar[str] = "skillrl"
    start_with: Literal["nothing", "library"] = "library"
    show: int = 3
    review_every: int = 5
    reviewed_below: float = 0.4
    most_episodes: int = 5
    most_added: int = 3

    def start(self, tools: MemoryTools) -> _SkillRL:
        """With the library's skills in the bank unless the options say otherwise."""
        return _SkillRL(self, tools)


class _SkillRL(BankMemory):
    options: SkillRLMemory

    def __init__(self, options: SkillRLMemory, tools: MemoryTools) -> None:
        super().__init__(options, tools)
        self._seen: dict[str, list[Episode]] = {}

    def score(self, similarity: float, entry: Entry, *, training: bool) -> float:
        """General skills first, then the type's own by likeness, newer ones after older ones of the same."""
        return 2.0 * (entry.kind == "general") + similarity

    def write(self, batch: RolloutBatch, episodes: Sequence[Episode]) -> list[Draft]:
        for episode in episodes:
            self._seen.setdefault(episode.task_type, []).append(episode)
        if self.update % self.options.review_every:
            return []
        seen, self._seen = self._seen, {}
        return [draft for kind in sorted(seen) for draft in self._review(seen[kind])]

    def _review(self, episodes: Sequence[Episode]) -> list[Draft]:
        won, lost = [e for e in episodes if e.won], [e for e in episodes if not e.won]
        if len(won) >= self.options.reviewed_below * len(episodes):
            return []
        most = self.options.most_episodes
        return self.writer.write([*won[:most], *lost[:most]])[: self.options.most_added]

    def evict(self) -> list[str]:
        """The oldest dynamic skills go first."""
        return self.bank.keep_best(
            self.options.bank_capacity, lambda entry: entry.created, protect=lambda entry: entry.writer == "library"
        )

    def state_dict(self) -> dict[str, Any]:
        seen = {kind: [episode.to_dict() for episode in episodes] for kind, episodes in self._seen.items()}
        return {**super().state_dict(), "seen": seen}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        self._seen = {kind: [Episode.from_dict(e) for e in episodes] for kind, episodes in state["seen"].items()}
