"""Memories that judge their texts by success alone: EvolveR's principles and SkillRL's skills."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

from skillc_gym.episodes import Episode
from trainers.advantages import RolloutBatch
from trainers.base import Count, Natural, NotNegative
from trainers.memory.bank import Entry, principle_score
from trainers.memory.banked import BankMemory, BankOptions
from trainers.memory.base import MemoryTools
from trainers.writers import Draft, ModelWriter, Writer


class _EvolveR(BankMemory):
    options: EvolveRMemory

    def score(self, similarity: float, entry: Entry, *, training: bool) -> float:
        return principle_score(entry) * similarity

    def credit(self, batch: RolloutBatch) -> None:
        """Writes the score where others look for the utility."""
        for entry in self.bank:
            self.bank.rate(entry.name, principle_score(entry))

    def write(self, batch: RolloutBatch, episodes: Sequence[Episode]) -> list[Draft]:
        """One principle per episode, unless the bank says the same already."""
        drafts: list[Draft] = []
        for lesson in self.writer.write_lessons(episodes):
            same = [entry.text for entry in (*self.bank, *drafts) if entry.task_type == lesson.task_type]
            if not self._says(same, lesson.text):
                drafts.append(replace(lesson, kind="principle"))
        return drafts

    def _says(self, texts: Sequence[str], text: str) -> bool:
        """Whether one of the texts is like this one, and this one like it: by words, a part is like the whole alone."""
        most = self.options.merge_above
        near = zip(texts, self.similarity(text, texts) if texts else (), strict=True)
        return any(there >= most and float(self.similarity(other, [text])[0]) >= most for other, there in near)

    def worth(self, entry: Entry) -> float:
        return principle_score(entry)

    def evict(self) -> list[str]:
        due = self.update % self.options.purge_every == 0
        weak = [entry.name for entry in self.bank if due and principle_score(entry) < self.options.purge_below]
        for name in weak:
            self.bank.remove(name)
        return [*weak, *super().evict()]


@dataclass(frozen=True)
class EvolveRMemory(BankOptions):
    """Options of EvolveR's memory (arXiv 2510.16079): principles with a score of how often they helped.

    The paper's agent asks for principles when it wants them and its code is for question answering alone; here an
    episode is shown the best of them from the start.
    """

    memory: ClassVar[type[BankMemory]] = _EvolveR
    name: ClassVar[str] = "evolver"
    show: Natural = 3
    merge_above: NotNegative = 0.85
    """A new principle this like an old one of its task type is taken for the same."""
    purge_below: NotNegative = 0.3
    """Principles with a lower score are dropped."""
    purge_every: Count = 10
    """Updates between two looks at the scores, as in the released script: one group must not decide alone."""


@dataclass
class _Seen:
    """A task type's episodes since the last review: how many were won and lost, and the first few of both."""

    won: int = 0
    lost: int = 0
    episodes: list[Episode] = field(default_factory=list)
    """Those that a review reads: those won before those lost."""

    def add(self, episode: Episode, most: int) -> None:
        """Counts an episode, and keeps it while there are fewer than ``most`` of its kind."""
        if episode.won and self.won < most:
            self.episodes.insert(self.won, episode)
        elif not episode.won and self.lost < most:
            self.episodes.append(episode)
        self.won, self.lost = self.won + bool(episode.won), self.lost + (not episode.won)

    def to_dict(self) -> dict[str, Any]:
        """As JSON-able values."""
        return {"won": self.won, "lost": self.lost, "episodes": [episode.to_dict() for episode in self.episodes]}

    @classmethod
    def from_dict(cls, state: Mapping[str, Any] | Sequence[Mapping[str, Any]], most: int) -> _Seen:
        """What `to_dict` gave; earlier versions listed all episodes."""
        if isinstance(state, Mapping):
            return cls(state["won"], state["lost"], [Episode.from_dict(each) for each in state["episodes"]])
        seen = cls()
        for each in state:
            seen.add(Episode.from_dict(each), most)
        return seen


class _SkillRL(BankMemory):
    options: SkillRLMemory

    def __init__(self, options: SkillRLMemory, tools: MemoryTools) -> None:
        super().__init__(options, tools)
        self._seen: dict[str, _Seen] = {}

    def score(self, similarity: float, entry: Entry, *, training: bool) -> float:
        """General skills first, then the library's for the type: what is written later stands beside them."""
        return 2.0 * ((entry.kind == "general") + (entry.writer == "library")) + similarity

    def write(self, batch: RolloutBatch, episodes: Sequence[Episode]) -> list[Draft]:
        for episode in episodes:
            self._seen.setdefault(episode.task_type, _Seen()).add(episode, self.options.most_episodes)
        if self.update % self.options.review_every:
            return []
        seen, self._seen = self._seen, {}
        return [draft for kind in sorted(seen) for draft in self._review(seen[kind])]

    def _review(self, seen: _Seen) -> list[Draft]:
        if seen.won >= self.options.reviewed_below * (seen.won + seen.lost):
            return []
        return self.writer.write(seen.episodes)[: self.options.most_added]

    def worth(self, entry: Entry) -> float:
        return entry.created

    def protects(self, entry: Entry) -> bool:
        return entry.writer == "library"

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "seen": {kind: seen.to_dict() for kind, seen in self._seen.items()}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        most = self.options.most_episodes
        self._seen = {kind: _Seen.from_dict(seen, most) for kind, seen in state["seen"].items()}


@dataclass(frozen=True)
class SkillRLMemory(BankOptions):
    """Options of SkillRL's memory (arXiv 2602.08234): a bank that grows where agents keep failing.

    The paper sends failures of *validation* tasks to its language model; here only training tasks teach.
    """

    memory: ClassVar[type[BankMemory]] = _SkillRL
    name: ClassVar[str] = "skillrl"
    start_with: Literal["nothing", "library"] = "library"
    show: Natural = 3
    review_every: Count = 5
    """Updates between two looks at the failures."""
    reviewed_below: NotNegative = 0.4
    """A task type is looked at if its success since the last look lies below this."""
    most_episodes: Natural = 5
    """Most failed episodes of a type that are looked at; as many won ones stand beside them."""
    most_added: Natural = 3
    """Most new skills per type and look."""

    def new_writer(self, tools: MemoryTools) -> Writer:
        """The writer that the options ask for, shown all episodes that a look keeps."""
        writer = super().new_writer(tools)
        if isinstance(writer, ModelWriter):
            writer.shown = self.most_episodes
        return writer
