"""Memories whose entries have a measured utility: those of D2Skill, RetroAgent and Skill1."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, ClassVar, Literal

import numpy as np

from skillc_gym.episodes import Episode
from trainers.advantages import FloatArray, RolloutBatch
from trainers.advantages.grouping import group_indices
from trainers.base import Fraction, Natural, NotNegative
from trainers.memory.bank import Entry, hindsight_bonus, moving_utility, upper_confidence
from trainers.memory.banked import BankMemory, BankOptions, shown_entries
from trainers.memory.base import MemoryTools
from trainers.writers import Draft
from trainers.writers.by_rule import by_type, share_taken, supported_steps


class _D2Skill(BankMemory):
    options: D2SkillMemory

    def score(self, similarity: float, entry: Entry, *, training: bool) -> float:
        """``0.1 sim + 0.9 (u + scale bonus)``, without the bonus outside of training."""
        return 0.1 * similarity + 0.9 * upper_confidence(entry, self.bank.total_uses, 0.05 if training else 0.0)

    def returns(self, batch: RolloutBatch) -> FloatArray:
        bonus = hindsight_bonus(batch.success, batch.task, batch.condition)
        whose = batch.condition if self.options.hindsight_for == "injected" else np.ones(len(bonus), dtype=bool)
        return batch.returns + self.options.hindsight_weight * bonus * whose

    def credit(self, batch: RolloutBatch) -> None:
        """``u <- (1 - rate) u + rate (mean success with - mean success without)``, per task in which it was shown."""
        for own in _groups(batch):
            plain = [e.won for e in own if not e.condition]
            for name in sorted({name for e in own for name in shown_entries(e)} if plain else ()):
                shown = [e.won for e in own if name in shown_entries(e)]
                if name in self.bank:
                    worth = fmean(shown) - fmean(plain)
                    self.bank.rate(name, moving_utility(self.bank[name].utility, worth, self.options.utility_rate))

    def write(self, batch: RolloutBatch, episodes: Sequence[Episode]) -> list[Draft]:
        """Reflects on what failed with the skill in groups that mostly failed, beside siblings that succeeded."""
        poor = [own for own in _groups(batch) if fmean(e.won for e in own) < self.options.written_below]
        failed = [(own, lost) for own in poor if (lost := [e for e in own if e.condition and not e.won])]
        drafts = []
        for own, lost in failed[: self.options.most_written]:
            drafts += self.writer.write([*[e for e in own if e.won], *lost])
        return drafts

    def worth(self, entry: Entry) -> float:
        return upper_confidence(entry, self.bank.total_uses)

    def protects(self, entry: Entry) -> bool:
        return self.update - entry.created < self.options.protected_updates


@dataclass(frozen=True)
class D2SkillMemory(BankOptions):
    """Options of D2Skill's memory (arXiv 2603.28716): utilities are measured against skill-free siblings."""

    memory: ClassVar[type[BankMemory]] = _D2Skill
    name: ClassVar[str] = "d2skill"
    adds_to_returns: ClassVar[bool] = True
    published_likeness: ClassVar[float] = 0.7
    candidates: Natural | None = 10
    utility_rate: Fraction = 0.5
    """Weight of an update's credit in an entry's utility."""
    written_below: NotNegative = 0.5
    """A group is reflected on if a smaller share of its rollouts succeeds, with the skill and without."""
    most_written: Natural = 10
    """Most groups that are reflected on per update."""
    protected_updates: Natural = 10
    """Entries this young are not evicted."""
    hindsight_weight: NotNegative = 0.1
    """Weight of the hindsight bonus in the return; the paper's 1 stands beside a return of 10 for a win, which is 1
    here."""
    hindsight_for: Literal["all", "injected"] = "all"
    """Whose return it is added to: every rollout's, as in the released code, or only the skill-injected ones', as the
    bonus is also described."""


def _groups(batch: RolloutBatch) -> list[list[Episode]]:
    return [[batch.trajectories[i].episode for i in rows] for rows in group_indices(batch.task)]


class _RetroAgent(BankMemory):
    options: RetroAgentMemory

    def __init__(self, options: RetroAgentMemory, tools: MemoryTools) -> None:
        super().__init__(options, tools)
        self._best: dict[str, float] = {}
        self._milestones: dict[str, list[str]] = {}
        self._graded: set[str] = set()

    def score(self, similarity: float, entry: Entry, *, training: bool) -> float:
        """``alpha sim + (1 - alpha) (u + sqrt(ln N / n))``, without the root outside of training.

        An entry counts as used once when it is added.
        """
        alpha, scale = self.options.likeness_weight, 1.0 if training else 0.0
        bonus = math.sqrt(math.log(max(self.bank.total_uses + len(self.bank), 1)) / (1 + entry.uses))
        return alpha * similarity + (1.0 - alpha) * (entry.utility + scale * bonus)

    def returns(self, batch: RolloutBatch) -> FloatArray:
        """Adds the intrinsic reward, the gain over the running best of the task, which it does not move."""
        episodes = [trajectory.episode for trajectory in batch.trajectories]
        graded, milestones = self._measures(episodes)
        extra = []
        for episode in episodes:
            steps = () if episode.task_type in graded else milestones.get(episode.task_type, ())
            done = max(episode.task_score, share_taken(episode, steps) * len(steps) / (len(steps) + 1))
            progress = 1.0 if episode.won else done
            extra.append(max(0.0, progress - self._best.get(episode.task_id, 0.0)))
        return batch.returns + self.options.intrinsic_weight * np.asarray(extra, dtype=np.float64)

    def credit(self, batch: RolloutBatch) -> None:
        """By success; each task's running best follows its group's mean success."""
        self.credit_success(batch, self.options.utility_rate)
        self._graded, self._milestones = self._measures([trajectory.episode for trajectory in batch.trajectories])
        for own in _groups(batch):
            task, success = own[0].task_id, fmean(e.won for e in own)
            self._best[task] = max(success, self._best.get(task, 0.0))

    def write(self, batch: RolloutBatch, episodes: Sequence[Episode]) -> list[Draft]:
        return self.writer.write_lessons(episodes)

    def state_dict(self) -> dict[str, Any]:
        measures = {"milestones": dict(sorted(self._milestones.items())), "graded": sorted(self._graded)}
        return {**super().state_dict(), "best": dict(sorted(self._best.items())), **measures}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        self._best = {task: float(best) for task, best in state["best"].items()}
        self._milestones, self._graded = dict(state.get("milestones", {})), set(state.get("graded", ()))

    def _measures(self, episodes: Sequence[Episode]) -> tuple[set[str], dict[str, list[str]]]:
        """The types whose lost episodes are graded, and the steps of won ones by type, this update's included."""
        graded = self._graded | {e.task_type for e in episodes if not e.won and 0.0 < e.task_score < 1.0}
        won = by_type([e for e in episodes if e.won])
        latest = {own[0].task_type: [found.step for found in supported_steps(own, ())] for own in won}
        return graded, {**self._milestones, **latest}


@dataclass(frozen=True)
class RetroAgentMemory(BankOptions):
    """Options of RetroAgent's memory (arXiv 2603.08561): lessons of all episodes, a reward for going further.

    The paper's policy reflects in JSON on its own episode and says which share of the subtasks it did. Here rules say
    it: the share of the steps that won episodes of the type have in common, winning counted as one more; the task's
    score where the environment grades what is lost; 1 if it won.
    """

    memory: ClassVar[type[BankMemory]] = _RetroAgent
    name: ClassVar[str] = "retroagent"
    adds_to_returns: ClassVar[bool] = True
    published_likeness: ClassVar[float] = 0.4
    first_utility: ClassVar[float] = 0.5
    likeness_weight: Fraction = 0.7
    """Weight of likeness in the score (the paper's alpha)."""
    utility_rate: Fraction = 0.05
    """Weight of an episode's success in the utility of what it was shown."""
    intrinsic_weight: NotNegative = 0.1
    """Weight of the reward for progress beyond the task's best; the paper's 1 stands beside a return of 10 for a win,
    which is 1 here."""


class _Skill1(BankMemory):
    options: Skill1Memory

    def score(self, similarity: float, entry: Entry, *, training: bool) -> float:
        return upper_confidence(entry, self.bank.total_uses, 0.05 if training else 0.0)

    def credit(self, batch: RolloutBatch) -> None:
        self.credit_success(batch, self.options.utility_rate)

    def write(self, batch: RolloutBatch, episodes: Sequence[Episode]) -> list[Draft]:
        """Distils won episodes of the types in which no entry promises success yet."""
        best: dict[str, float] = {}
        for entry in self.bank:
            best[entry.task_type] = max(best.get(entry.task_type, 0.0), entry.utility)
        return self.writer.write_lessons([e for e in episodes if float(e.won) > best.get(e.task_type, 0.0)])


@dataclass(frozen=True)
class Skill1Memory(BankOptions):
    """Options of Skill1's memory (arXiv 2605.06130): retrieve a few, select one, distil a new one from what worked.

    In the paper one policy writes the query, ranks the candidates and distils, and is rewarded for each; the exact form
    of its ranking reward is unsure. Here the query is the goal, the ranking is by utility with a bonus for trying, and
    a distilled skill is kept if its episode did better than the best candidate's utility promised.
    """

    memory: ClassVar[type[BankMemory]] = _Skill1
    name: ClassVar[str] = "skill1"
    bank_capacity: Natural = 5000
    candidates: Natural | None = 3
    """Entries that are retrieved, of which one is selected; all if None."""
    utility_rate: Fraction = 0.05
    """Weight of an episode's success in the utility of what it was shown."""
