"""A list of insights that a language model edits: ExpeL's counts (arXiv 2308.10144)."""

from __future__ import annotations

from collections.abc import Iterable

from trainers.memory.replies import Edit

__all__ = ["RuleList"]

_START, _FULL_REMOVAL = 2, 3


class RuleList:
    """Rules with a strength: ADD starts at 2, AGREE and EDIT add 1, REMOVE takes 1 (3 if the list is full); 0 is gone.

    Args:
        capacity: Most rules; a full list takes no new one.
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
            change = -(_FULL_REMOVAL if full else 1) if edit.kind == "REMOVE" else 1
            numbered[edit.rule - 1] = (edit.text if edit.kind == "EDIT" else text, strength + change)
        self._rules = sorted((rule for rule in numbered if rule[1] > 0), key=lambda rule: -rule[1])
