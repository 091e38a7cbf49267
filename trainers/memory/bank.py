"""A bank of texts that grows while an agent trains, as lines of JSON, and what an entry of it is worth."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skillc_gym.errors import ConfigError, MissingDataError, SkillCError, TranscriptError, unknown_name
from skillc_gym.files import replace_file
from trainers.advantages import FloatArray
from trainers.tracking.files import parse_object
from trainers.writers.base import Draft

FORMAT, VERSION = "skillc-bank", 1
_NUMBERED = re.compile(r"s\d{5,18}")


@dataclass(frozen=True)
class Entry(Draft):
    """A text in a bank; its name is never used again in that bank.

    ``utility`` is what its method believes it is worth, ``uses`` are episodes that were shown it, of which ``wins``
    succeeded; ``created`` and ``last_used`` are updates, the latter that of its creation at first.
    """

    name: str = ""
    created: int = 0
    utility: float = 0.0
    uses: int = 0
    wins: float = 0.0
    last_used: int = 0

    def used(self, won: bool, update: int) -> Entry:
        """The entry after one more episode was shown it."""
        return replace(self, uses=self.uses + 1, wins=self.wins + float(won), last_used=update)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able values; :meth:`from_dict` gives an equal entry."""
        return {**asdict(self), "sources": list(self.sources)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Entry:
        """Rebuilds an entry; a TranscriptError says which field is missing, unknown or of another type."""
        known = {spec.name for spec in fields(cls)}
        if set(values) != known:
            raise TranscriptError(f"An entry has the fields {sorted(known)}, got {sorted(values)}")
        try:
            entry = cls(**values)
        except SkillCError as error:
            raise TranscriptError(f"An entry cannot be read: {error}") from error
        if not (math.isfinite(entry.utility) and math.isfinite(entry.wins)):  # any ranking would be of no order
            raise TranscriptError(f"Entry {entry.name!r} has a utility or wins that are no finite number")
        if entry.name in ("", "none") or "+" in entry.name:  # as episodes tell no text, and several
            raise TranscriptError(
                f"An entry cannot be called {entry.name!r}: episodes could not tell that they used it"
            )
        if entry.uses < 0 or entry.wins < 0:
            raise TranscriptError(
                f"Entry {entry.name!r} has {entry.uses} uses and {entry.wins:g} wins; both count from 0"
            )
        return entry


class SkillBank:
    """Entries in the order in which they came; the same calls give the same bank, byte for byte.

    Examples:
        >>> bank = SkillBank()
        >>> entry = bank.add(Draft("Heat it in the microwave.", key="put a hot egg in fridge."), update=3)
        >>> entry.name, bank.add(Draft("Heat it in the microwave."), update=4).name
        ('s00001', 's00001')
    """

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._added = 0
        self.total_uses = 0
        """Uses of all entries together."""

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(tuple(self._entries.values()))

    def __getitem__(self, name: str) -> Entry:
        if name not in self._entries:
            raise unknown_name("entry", name, self._entries)
        return self._entries[name]

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def add(self, draft: Draft, update: int, *, utility: float = 0.0) -> Entry:
        """Adds a text that was written in an update; if the same one for the same type is there, gives that."""
        for entry in self:
            if (entry.text, entry.task_type) == (draft.text, draft.task_type):
                return entry
        self._added += 1
        own = {"name": f"s{self._added:05d}", "created": update, "utility": float(utility), "last_used": update}
        entry = Entry(**{**vars(draft), **own})
        self._entries[entry.name] = entry
        return entry

    def record_use(self, names: Iterable[str], won: bool, update: int) -> None:
        """Counts an episode that was shown these entries; entries evicted since then are passed over."""
        for name in names:
            if name in self._entries:
                self._entries[name] = self._entries[name].used(won, update)
                self.total_uses += 1

    def rate(self, name: str, utility: float) -> None:
        """Sets what an entry is believed to be worth."""
        self._entries[name] = replace(self[name], utility=float(utility))

    def replace_text(self, name: str, text: str) -> None:
        """Rewrites an entry; its counts stay."""
        self._entries[name] = replace(self[name], text=text)

    def remove(self, name: str) -> None:
        """Takes an entry out; its name is never given again."""
        self.total_uses -= self[name].uses
        del self._entries[name]

    def keep_best(
        self, capacity: int, score: Callable[[Entry], float], *, protect: Callable[[Entry], bool] = lambda entry: False
    ) -> list[str]:
        """Evicts the lowest scores, the younger of equal ones, none to ``protect``; returns who went."""
        if capacity < 0:
            raise ConfigError(f"A bank's capacity is at least 0, got {capacity}")
        free = [entry for entry in self if not protect(entry)]
        ranked = sorted(free, key=score, reverse=True)
        room = max(0, capacity - (len(self) - len(free)))
        staying = {entry.name for entry in ranked[:room]}
        gone = [entry.name for entry in free if entry.name not in staying]
        for name in gone:
            self.remove(name)
        return gone

    def state_dict(self) -> dict[str, Any]:
        """Everything as JSON-able values."""
        head = {"format": FORMAT, "version": VERSION, "added": self._added}
        return {**head, "entries": [entry.to_dict() for entry in self]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores a bank; a TranscriptError if it is none, one of another version, or damaged."""
        if state.get("format") != FORMAT or state.get("version") != VERSION:
            raise TranscriptError(
                f"Expected a bank of format {FORMAT} version {VERSION}, got {state.get('format')!r} version "
                f"{state.get('version')!r}"
            )
        if "added" not in state or "entries" not in state:
            raise TranscriptError("The bank's header line lacks how many entries were ever added")
        entries, added = [Entry.from_dict(values) for values in state["entries"]], state["added"]
        named = {entry.name: entry for entry in entries}
        if len(named) != len(entries) or not isinstance(added, int) or added < len(entries):
            raise TranscriptError("The bank's names are not unique, or it counts fewer entries than it has")
        if (last := max((int(name[1:]) for name in named if _NUMBERED.fullmatch(name)), default=0)) > added:
            raise TranscriptError(
                f"The bank says that {added} entries were ever added, and has number {last}: it must "
                "say at least that, or the next one takes a name that is taken"
            )
        self._entries, self._added = named, added
        self.total_uses = sum(entry.uses for entry in entries)

    def from_before(self) -> SkillBank:
        """Itself, its entries as those of a run that begins: their updates were counted by the run that wrote them."""
        self._entries = {name: replace(entry, created=0, last_used=0) for name, entry in self._entries.items()}
        return self

    def save(self, path: Path) -> None:
        """Writes a header line and one line per entry."""
        state = self.state_dict()
        lines = [{key: value for key, value in state.items() if key != "entries"}, *state["entries"]]
        # ASCII escapes keep line separators and halves of surrogate pairs, which a model may write, on one line.
        replace_file(path, (json.dumps(line).encode("ascii") + b"\n" for line in lines))

    @classmethod
    def load(cls, path: Path) -> SkillBank:
        """Reads what :meth:`save` wrote; a MissingDataError or TranscriptError says what is there instead."""
        if not path.is_file():
            raise MissingDataError(f"No bank {path}; expected a bank.jsonl, such as a run with a memory leaves")
        lines = path.read_bytes().removesuffix(b"\n").split(b"\n")
        if lines == [b""]:
            raise TranscriptError(f"{path} is empty; a bank begins with a header line")
        values = [_object(path, number, line) for number, line in enumerate(lines, 1)]
        bank = cls()
        bank.load_state_dict({**values[0], "entries": values[1:]})
        return bank


def _object(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        return parse_object(line)
    except ValueError as error:
        raise TranscriptError(f"{path}:{number} is not a JSON object: {error}") from error


def moving_utility(utility: float, credit: float, rate: float) -> float:
    """``(1 - rate) u + rate credit``: D2Skill with rate 0.5, RetroAgent and Skill1 with 0.05."""
    return (1.0 - rate) * utility + rate * credit


def upper_confidence(entry: Entry, total: int, scale: float = 0.05) -> float:
    """``u + scale sqrt(ln(1 + N) / (1 + n))``, N uses of all: D2Skill ranks and evicts by it, Skill1 ranks by it."""
    return entry.utility + scale * math.sqrt(math.log1p(total) / (1 + entry.uses))


def principle_score(entry: Entry) -> float:
    """``(s + 1) / (n + 2)`` of EvolveR (arXiv 2510.16079): s successes in n uses."""
    return (entry.wins + 1.0) / (entry.uses + 2.0)


def hindsight_bonus(success: ArrayLike, task: Sequence[str], condition: ArrayLike) -> FloatArray:
    """``success_i - mean success of the task's skill-free rollouts`` of D2Skill; float64[N], 0 where there are none."""
    won, tasks, shown = np.asarray(success, dtype=np.float64), np.asarray(task), np.asarray(condition, dtype=bool)
    bonus = np.zeros(len(tasks))
    for name in dict.fromkeys(task):
        own = tasks == name
        if (own & ~shown).any():
            bonus[own] = won[own] - won[own & ~shown].mean()
    return bonus
