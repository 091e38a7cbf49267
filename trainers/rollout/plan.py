"""What a collection plays, and every seed of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Plan", "derive_seed"]


@dataclass(frozen=True)
class Plan:
    """One group per task.

    Attributes:
        task_ids: The task of each group.
        n_plus: How many of its members see the skill.
        numbers: The groups' numbers in a larger collection.
        group_size: Members per group.
        seed: Seed of the collection.
        skills: Per group, what is shown instead of the library's text; None for the library's everywhere.
        first_attempt: Number of a group's first member within its condition.
        shared_draws: Whether pairs of the two conditions share their draws.
    """

    task_ids: tuple[str, ...]
    n_plus: tuple[int, ...]
    numbers: tuple[int, ...]
    group_size: int
    seed: int
    skills: tuple[Any, ...] | None = None
    first_attempt: int = 0
    shared_draws: bool = True

    @property
    def episodes(self) -> int:
        """Episodes in all."""
        return len(self.task_ids) * self.group_size

    def group_seed(self, group: int) -> int:
        """Seed of a group's task. Environments take seeds of 31 bits."""
        return derive_seed(self.seed, self.numbers[group]) % 2**31

    def member_seed(self, group: int, place: int) -> int:
        """Counts members within their condition, so that pairs share their draws, or else through the group."""
        injected = self.n_plus[group] if self.shared_draws else self.group_size
        attempt = place if place < injected else place - injected
        return derive_seed(self.seed, self.numbers[group], self.first_attempt + attempt)


def derive_seed(*numbers: int) -> int:
    """A 64-bit seed that depends on all of the given non-negative numbers and on their order."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0])
