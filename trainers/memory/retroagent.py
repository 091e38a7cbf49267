"""RetroAgent's memory (arXiv 2603.08561): lessons from every episode, and a reward for going further than before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, ClassVar

import numpy as np

from skillc_gym.episodes import Episode
from trainers.advantages import FloatArray, RolloutBatch
from trainers.memory.banked import BankMemory, BankOptions, shown_entries
from trainers.memory.base import MemoryTools
from trainers.memory.credit import intrinsic_reward, moving_utility, retroagent_score
from trainers.memory.entries import Draft, Entry

__all__ = ["RetroAgentMemory"]


@dataclass(frozen=True)
class RetroAgentMemory(BankOptions):
    """Options of RetroAgent's memory.

    The paper's policy reflects in JSON on its own episode and says how much of the task it did; with the rule-based
    writer an episode's progress is its task score, 1 if it won.

    Attributes:
        likeness_weight: Weight of likeness in the score (the paper's alpha).
        least_likeness: Entries less like the task than this are not shown.
        utility_rate: Weight of an episode's success in the utility of what it was shown.
        intrinsic_weight: Weight of the reward for progress beyond the task's best.
    """

    name: ClassVar[str] = "retroagent"
    likeness_weight: float = 0.7
    least_likeness: float = 0.4
    utility_rate: float = 0.05
    intrinsic_weight: float = 1.0

    def start(self, tools: MemoryTools) -> _RetroAgent:
        """With an empty bank unless the options say otherwise."""
        return _RetroAgent(self, tools)


class _RetroAgent(BankMemory):
    options: RetroAgentMemory

    def __init__(self, options: RetroAgentMemory, tools: MemoryTools) -> None:
        super().__init__(options, tools)
        self._best: dict[str, float] = {}

    def retrieved(self, likeness: Sequence[float], entries: Sequence[Entry]) -> list[tuple[float, Entry]]:
        """Only entries that are like the task."""
        pairs = super().retrieved(likeness, entries)
        return [pair for pair in pairs if pair[0] >= self.options.least_likeness]

    def score(self, similarity: float, entry: Entry, *, training: bool) -> float:
        scale = 1.0 if training else 0.0
        return retroagent_score(similarity, entry, self.bank.total_uses, self.options.likeness_weight, scale)

    def returns(self, batch: RolloutBatch) -> FloatArray:
        """Adds the intrinsic reward; moves no running best."""
        extra = [
            intrinsic_reward(_progress(t.episode), self._best.get(t.episode.task_id, 0.0)) for t in batch.trajectories
        ]
        return batch.returns + self.options.intrinsic_weight * np.asarray(extra, dtype=np.float64)

    def credit(self, batch: RolloutBatch) -> None:
        """``u <- (1 - rate) u + rate won`` per episode; each task's running best follows its group's mean success."""
        for trajectory in batch.trajectories:
            won = float(trajectory.episode.won)
            for name in shown_entries(trajectory.episode):
                if name in self.bank:
                    self.bank.rate(name, moving_utility(self.bank[name].utility, won, self.options.utility_rate))
        for task in dict.fromkeys(batch.task):
            success = fmean(float(w) for w, other in zip(batch.success, batch.task, strict=True) if other == task)
            self._best[task] = max(success, self._best.get(task, 0.0))

    def write(self, batch: RolloutBatch, episodes: Sequence[Episode]) -> list[Draft]:
        """One lesson per episode that has one; the same lesson is kept once."""
        lessons = (self.writer.write_lesson(episode) for episode in episodes)
        return [lesson for lesson in lessons if lesson is not None]

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "best": dict(sorted(self._best.items()))}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        self._best = {task: float(best) for task, best in state["best"].items()}


def _progress(episode: Episode) -> float:
    return 1.0 if episode.won else float(episode.task_score)
