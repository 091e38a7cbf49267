"""What a bank holds: a text, where it came from, and how it has done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, get_args

from skill_library.errors import brief
from skillc_gym.errors import ConfigError, TranscriptError, unknown_name

__all__ = ["Draft", "Entry", "Kind"]

Kind = Literal["general", "task", "principle"]


@dataclass(frozen=True)
class Draft:
    """A text that somebody proposes for the bank.

    Attributes:
        text: What an agent will read.
        key: What it is retrieved by: a goal.
        task_type: The type it was written for; "" for all types.
        kind: What sort of lesson it is.
        writer: Who wrote it.
        sources: Tasks of the episodes that it was written from; training tasks only.
    """

    text: str
    key: str = ""
    task_type: str = ""
    kind: Kind = "task"
    writer: str = ""
    sources: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise ConfigError("An entry needs a text that an agent can read, got an empty one")
        if self.kind not in get_args(Kind):
            raise unknown_name("kind of entry", self.kind, get_args(Kind))
        object.__setattr__(self, "sources", tuple(self.sources))


@dataclass(frozen=True)
class Entry(Draft):
    """A text in a bank.

    Attributes:
        name: Unique and never used again in its bank.
        created: Update in which it was added.
        utility: What its method believes it is worth.
        uses: Episodes that were shown it.
        wins: How many of them succeeded.
        last_used: Update in which it was last shown; that of its creation at first.
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
        """Rebuilds an entry.

        Raises:
            TranscriptError: A field is missing, unknown or of another type.
        """
        known = {spec.name: type(getattr(_LIKE, spec.name)) for spec in fields(cls)}
        if set(values) != set(known):
            raise TranscriptError(f"An entry has the fields {sorted(known)}, got {sorted(values)}")
        for name, kind in known.items():
            if not isinstance(values[name], _READ_AS.get(kind, kind)):
                raise TranscriptError(f"An entry's {name} is a {kind.__name__}, got {brief(values[name])}")
        return cls(**values)


_LIKE = Entry("an entry with a value of the right type in every field")
_READ_AS: Mapping[type, Any] = {float: int | float, tuple: list | tuple}
