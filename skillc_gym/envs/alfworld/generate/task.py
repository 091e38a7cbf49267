"""What a generated game asks for."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Task"]


@dataclass(frozen=True)
class Task:
    """What is wanted: kinds of the object and of the receptacle (or lamp), and how many objects."""

    kind: str
    thing: str
    place: str

    @property
    def wanted(self) -> int:
        """Number of objects that have to be brought."""
        return 2 if self.kind == "pick2" else 1
