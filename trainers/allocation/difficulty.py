"""Hard, medium and easy task types by recent success: the router of Skill0.5 (arXiv 2605.28424)."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from statistics import fmean
from typing import Any, Literal

__all__ = ["Difficulty", "DifficultyRouter"]

Difficulty = Literal["hard", "medium", "easy"]


class DifficultyRouter:
    """A type without any success is hard; one above the mean of the successes above 0 over some updates is easy.

    The paper routes each task by the eight rollouts just played, and then plays eight more; here a type is routed by
    its rollouts of the last update in which it came up. Types not seen yet are medium.

    Args:
        window: Updates whose means make the threshold.
    """

    def __init__(self, window: int = 5) -> None:
        self._means: deque[float] = deque(maxlen=window)
        self._rates: dict[str, float] = {}

    def observe(self, rates: Mapping[str, float]) -> None:
        """Takes in the success of each type of an update, among rollouts with their usual prompt."""
        self._rates.update(rates)
        above = [rate for _, rate in sorted(rates.items()) if rate > 0]
        if above:
            self._means.append(fmean(above))

    def level(self, task_type: str) -> Difficulty:
        """How hard a type is now."""
        rate = self._rates.get(task_type)
        if rate is None:
            return "medium"
        if rate == 0.0:
            return "hard"
        return "easy" if self._means and rate > fmean(self._means) else "medium"

    def state_dict(self) -> dict[str, Any]:
        """What it has seen, as JSON-able values."""
        return {"means": list(self._means), "rates": dict(sorted(self._rates.items()))}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores what it had seen."""
        self._means.clear()
        self._means.extend(float(mean) for mean in state["means"])
        self._rates = {kind: float(rate) for kind, rate in state["rates"].items()}
