"""A writer without a language model: steps that won episodes share and lost ones lack, in the words of the commands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from skillc_gym.episodes import Episode
from trainers.memory.abstraction import abstract_actions
from trainers.memory.entries import Draft

__all__ = ["StepSupport", "StepWriter", "supported_steps"]


@dataclass(frozen=True)
class StepSupport:
    """An abstract step of the episodes of one task type.

    Attributes:
        step: The step.
        won: Share of the won episodes that took it.
        lost: Share of the lost ones that took it; 0 without lost ones.
        place: Where in a won episode it was last taken, from 0 (the start) to 1 (the end), on average.
    """

    step: str
    won: float
    lost: float
    place: float

    @property
    def difference(self) -> float:
        """How much oftener won episodes took it."""
        return self.won - self.lost


def supported_steps(won: Sequence[Episode], lost: Sequence[Episode], least: float = 0.6) -> list[StepSupport]:
    """The abstract steps that at least a share of the won episodes took, in the order in which they are taken.

    Args:
        won: Won episodes of one task type.
        lost: Lost ones of the same type.
        least: Smallest share.
    """
    places: dict[str, list[float]] = {}
    for episode in won:
        for step, place in _last_places(episode).items():
            places.setdefault(step, []).append(place)
    missed = Counter(step for episode in lost for step in _last_places(episode))
    found = [
        StepSupport(step, len(seen) / len(won), missed[step] / len(lost) if lost else 0.0, fmean(seen))
        for step, seen in places.items()
        if len(seen) >= least * len(won)
    ]
    return sorted(found, key=lambda support: (support.place, support.step))


class StepWriter:
    """Writes one skill per task type that has won episodes; deterministic, and free of any model.

    The step in which won and lost episodes differ most is called the key step.

    Args:
        least: Share of the won episodes that must have taken a step.
    """

    def __init__(self, least: float = 0.6) -> None:
        self.name = "steps"
        self.bad_replies = 0
        self.least = least

    def write(self, episodes: Sequence[Episode]) -> list[Draft]:
        """Writes skills from episodes of training tasks.

        Args:
            episodes: Won and lost ones, of any types.

        Returns:
            One draft per type with at least one won episode, by type.
        """
        by_type: dict[str, list[Episode]] = {}
        for episode in episodes:
            by_type.setdefault(episode.task_type, []).append(episode)
        drafts = (self._skill(kind, played) for kind, played in sorted(by_type.items()))
        return [draft for draft in drafts if draft is not None]

    def write_lesson(self, episode: Episode) -> Draft | None:
        """Writes what one episode taught: the steps of a won one, nothing from a lost one."""
        return self._skill(episode.task_type, [episode])

    def _skill(self, task_type: str, episodes: Sequence[Episode]) -> Draft | None:
        won = [episode for episode in episodes if episode.won]
        steps = supported_steps(won, [episode for episode in episodes if not episode.won], self.least) if won else []
        if not steps:
            return None
        key = max(steps, key=lambda support: (support.difference, support.place)) if len(won) < len(episodes) else None
        lines = [f"{i}. {'Key step: ' if step is key else ''}{step.step}." for i, step in enumerate(steps, 1)]
        return Draft(
            text="\n".join(["Skill: do this in order.", *lines]),
            key=won[0].goal,
            task_type=task_type,
            writer=self.name,
            sources=tuple(sorted({episode.task_id for episode in episodes})),
        )


def _last_places(episode: Episode) -> Mapping[str, float]:
    steps = abstract_actions([turn.action for turn in episode.turns if turn.action_valid], episode.goal)
    return {step: place / max(len(steps) - 1, 1) for place, step in enumerate(steps)}
