"""What the memories that keep a bank have in common: starting it, choosing from it, counting, writing, evicting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from skill_library import SkillText
from skillc_gym.episodes import Episode
from trainers.advantages import RolloutBatch
from trainers.base import Natural
from trainers.memory.bank import Entry, SkillBank, moving_utility
from trainers.memory.base import Memory, MemoryTools, SkillMemory
from trainers.retrieval import similarity
from trainers.writers import Draft, ModelWriter, StepWriter, Writer

_LOGGED = 8


@dataclass(frozen=True)
class BankOptions(Memory):
    """Options of every memory with a bank."""

    published_likeness: ClassVar[float] = 0.0
    first_utility: ClassVar[float] = 0.0
    """Utility of an entry that nobody has been shown yet."""

    memory: ClassVar[type[BankMemory]]
    writer: Literal["steps", "policy", "none"] = "steps"
    """Who writes: "steps" abstracts commands by rule, "policy" asks the policy itself, "none" leaves the bank as it
    is."""
    start_with: Literal["nothing", "library"] = "nothing"
    """What the bank holds at first: nothing, or the skills of the environment's library."""
    bank: str | None = None
    """A bank's JSONL file to start from instead."""
    embeddings: str | None = None
    """A sentence encoder, by folder or name; BM25 if None."""
    retrieval: str = ""
    """A retrieval rule of another name, or ``module:RULE``; "" leaves it to ``embeddings``."""
    show: Natural = 1
    """Most entries that an episode is shown."""
    bank_capacity: Natural = 300
    """Most entries that the bank keeps, beside those written in the same update; others that are kept because they are
    young take the places of the least useful."""
    candidates: Natural | None = None
    """Entries most like the task among which the score decides; all if None."""
    least_likeness: float | None = None
    """Entries less like the task than this are not shown; None for the method's published threshold, which is one of
    embeddings: likeness by words has another scale, and none there."""

    @property
    def threshold(self) -> float:
        """How like the task an entry must be."""
        published = 0.0 if self.embeddings is None or self.retrieval == "bm25" else self.published_likeness
        return published if self.least_likeness is None else self.least_likeness

    def start(self, tools: MemoryTools) -> BankMemory:
        """The method's memory, with the bank that the options name."""
        return self.memory(self, tools)

    def new_writer(self, tools: MemoryTools) -> Writer:
        """The writer that the options ask for."""
        if self.writer == "policy":
            return ModelWriter(tools.write, name="policy")
        return StepWriter() if self.writer == "steps" else Writer()

    def new_bank(self, tools: MemoryTools) -> SkillBank:
        """The bank that a run starts with."""
        if self.bank is not None:
            return SkillBank.load(Path(self.bank)).from_before()
        bank = SkillBank()
        if self.start_with == "library" and tools.library is not None:
            for skill in filter(lambda skill: skill.text, tools.library.skills):
                for kind in ("",) if skill.is_general else skill.task_types:
                    form: Literal["general", "task"] = "general" if skill.is_general else "task"
                    draft = Draft(skill.text, skill.description, kind, form, writer="library")
                    bank.add(draft, 0, utility=self.first_utility)
        return bank


class BankMemory(SkillMemory):
    """A memory with a bank; methods say how an entry is scored, credited and written.

    An episode's skill is named by the entries that it was shown, joined by ``+``, so its record says which they were.
    """

    shared_draws = False

    def __init__(self, options: BankOptions, tools: MemoryTools) -> None:
        self.options = options
        self.bank = options.new_bank(tools)
        self.writer = options.new_writer(tools)
        self.similarity = similarity(options.embeddings, options.retrieval)
        self.update = 0
        self._path = tools.folder / "bank.jsonl"

    def choose(self, task_id: str, task_type: str, goal: str, member: int, *, training: bool) -> SkillText | None:
        """The best entries of the task's type, the most useful first; an empty text if there is none."""
        entries = [entry for entry in self.bank if entry.task_type in ("", task_type)]
        likeness = self.similarity(goal or task_type, [entry.key or entry.text for entry in entries])
        candidates = self.retrieved([float(value) for value in likeness], entries)
        ranked = sorted(candidates, key=lambda pair: -self.score(*pair, training=training))
        return skill_text([entry for _, entry in ranked[: self.options.show]])

    def observe(self, batch: RolloutBatch) -> dict[str, Any]:
        """Counts, credits, writes and evicts, in this order."""
        self.update += 1
        episodes = [trajectory.episode for trajectory in batch.trajectories]
        shown = [shown_entries(episode) for episode in episodes]
        for names, episode in zip(shown, episodes, strict=True):
            self.bank.record_use(names, episode.won, self.update)
        self.credit(batch)
        first = self.options.first_utility
        written = [self.bank.add(draft, self.update, utility=first) for draft in self.write(batch, episodes)]
        evicted = self.evict()
        self.bank.save(self._path)
        added = {entry.name for entry in written if entry.created == self.update}
        return {"memory": {**self.describe(len(added), len(evicted)), "shown": sum(map(bool, shown))}}

    def retrieved(self, likeness: Sequence[float], entries: Sequence[Entry]) -> list[tuple[float, Entry]]:
        """The entries that come into question, each with its likeness to the task."""
        pairs = [pair for pair in zip(likeness, entries, strict=True) if pair[0] >= self.options.threshold]
        if self.options.candidates is None:
            return pairs
        return sorted(pairs, key=lambda pair: -pair[0])[: self.options.candidates]

    def score(self, similarity: float, entry: Entry, *, training: bool) -> float:
        """By what entries are ranked; higher is better."""
        raise NotImplementedError

    def credit(self, batch: RolloutBatch) -> None:
        """Moves utilities by what came of the update's episodes."""

    def write(self, batch: RolloutBatch, episodes: Sequence[Episode]) -> list[Draft]:
        """Writes new texts."""
        return []

    def credit_success(self, batch: RolloutBatch, rate: float) -> None:
        """``u <- (1 - rate) u + rate won`` for each entry that an episode was shown, episode by episode."""
        for trajectory in batch.trajectories:
            for name in shown_entries(trajectory.episode):
                if name in self.bank:
                    won = float(trajectory.episode.won)
                    self.bank.rate(name, moving_utility(self.bank[name].utility, won, rate))

    def worth(self, entry: Entry) -> float:
        """By what a full bank keeps entries; higher is better."""
        return self.score(0.0, entry, training=False)

    def protects(self, entry: Entry) -> bool:
        """Whether an entry stays in any case: one that nobody was shown yet has had no chance to be worth something."""
        return entry.created == self.update

    def evict(self) -> list[str]:
        """Makes room; returns who went. What was written in this update takes nobody's place before the next one."""
        new = sum(entry.created == self.update for entry in self.bank)
        return self.bank.keep_best(self.options.bank_capacity + new, self.worth, protect=self.protects)

    def describe(self, added: int, evicted: int) -> dict[str, Any]:
        """The bank in figures, with utility and uses of the entries used most."""
        top = sorted(self.bank, key=lambda entry: (-entry.uses, entry.name))[:_LOGGED]
        return {
            "size": len(self.bank),
            "added": added,
            "evicted": evicted,
            "bad_replies": self.writer.bad_replies,
            "entries": {entry.name: {"utility": entry.utility, "uses": entry.uses} for entry in top},
        }

    def state_dict(self) -> dict[str, Any]:
        """The bank, and how often it was updated."""
        return {"bank": self.bank.state_dict(), "update": self.update, "bad_replies": self.writer.bad_replies}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores both."""
        self.bank.load_state_dict(state["bank"])
        self.update = int(state["update"])
        self.writer.bad_replies = int(state["bad_replies"])


def skill_text(entries: Sequence[Entry]) -> SkillText:
    """What an agent reads of some entries: their texts, one empty line between two."""
    name = "+".join(entry.name for entry in entries) or "none"
    return SkillText(name, "\n\n".join(entry.text for entry in entries))


def shown_entries(episode: Episode) -> list[str]:
    """The names of the entries that an episode was shown."""
    return [] if episode.skill in ("", "none") else episode.skill.split("+")
