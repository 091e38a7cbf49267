"""Which transcripts a page shows, and how: a flat list grouped by task, what is compared next to each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from skillc_gym.envs.registry import short_type
from skillc_gym.episodes import Episode


class Fold(NamedTuple):
    """Episodes in one row of a page, under a line that says how they ended, with names over columns that need some."""

    summary: str
    episodes: tuple[Episode, ...]
    names: tuple[str, ...] = ()
    open: bool = False


@dataclass(frozen=True)
class TaskEpisodes:
    """One task's episodes by condition, in the order played."""

    with_skill: tuple[Episode, ...]
    without_skill: tuple[Episode, ...]

    @property
    def all(self) -> tuple[Episode, ...]:
        """Both conditions, the skill first."""
        return (*self.with_skill, *self.without_skill)

    @property
    def pair(self) -> tuple[Episode, ...]:
        """The first episode of each condition that there is."""
        return (*self.with_skill[:1], *self.without_skill[:1])

    @property
    def name(self) -> str:
        """The task's type and goal."""
        return f"{short_type(self.all[0].task_type)}: {self.all[0].goal}"

    def outcome(self) -> str:
        """How each condition ended, as a sentence has it."""
        arms = (("with the skill", self.with_skill), ("without", self.without_skill))
        return ", ".join(f"{name} {_ended(episodes)}" for name, episodes in arms if episodes)


def group_by_task(episodes: Iterable[Episode]) -> dict[str, TaskEpisodes]:
    """Sorts a flat list of episodes by task and condition; tasks in the order of their first episode."""
    found: dict[str, tuple[list[Episode], list[Episode]]] = {}
    for episode in episodes:
        found.setdefault(episode.task_id, ([], []))[0 if episode.condition else 1].append(episode)
    return {task: TaskEpisodes(tuple(with_), tuple(without)) for task, (with_, without) in found.items()}


def choose_tasks(before: Sequence[Episode], after: Sequence[Episode], count: int = 3) -> tuple[str, ...]:
    """The tasks that show most: what the skill alone solved before (if played), and training solved without it.

    Types take turns, so that few tasks show several types; ties go by task id. At least one of the tasks holds a failed
    episode after training, if there is any.
    """
    first, second = group_by_task(before), group_by_task(after)
    ranked = sorted(second, key=lambda task: (-_interest(first.get(task), second[task]), task))
    taken, turns = Counter[str](), []
    for rank, task in enumerate(ranked):
        kind = second[task].all[0].task_type
        taken[kind] += 1
        turns.append((taken[kind], rank, task))
    chosen = [task for _, _, task in sorted(turns)]
    # Beside its start, a trained policy is shown without the skill alone.
    shown = {task: second[task].without_skill[:1] if first.get(task) else second[task].pair for task in chosen}
    failed = [task for task in chosen if not all(episode.won for episode in shown[task])]
    picked = chosen[:count]
    if failed and picked and failed[0] not in picked:
        picked[-1] = failed[0]
    return tuple(picked)


def examples(before: Sequence[Episode], after: Sequence[Episode], count: int = 4) -> list[Fold]:
    """The tasks that show most, the first open: with the skill, without it, and, of a trained policy, without it."""
    first, second = group_by_task(before), group_by_task(after)
    return [
        _example(first.get(task), second[task], open_=not place)
        for place, task in enumerate(choose_tasks(before, after, count))
    ]


def _example(before: TaskEpisodes | None, after: TaskEpisodes, *, open_: bool) -> Fold:
    first = before or after
    shown = {"with the skill": first.with_skill, "without": first.without_skill}
    if before is not None:
        shown["trained, without"] = after.without_skill
    columns = {name: episodes[0] for name, episodes in shown.items() if episodes}
    how = "; ".join(f"{name}: {'solved' if episode.won else 'failed'}" for name, episode in columns.items())
    return Fold(f"{after.name} — {how}", tuple(columns.values()), tuple(columns), open_)


def all_folds(episodes: Sequence[Episode]) -> list[Fold]:
    """Every task's episodes, both conditions next to each other."""
    return [Fold(f"{found.name} — {found.outcome()}", found.all) for found in group_by_task(episodes).values()]


def _ended(episodes: Sequence[Episode]) -> str:
    solved = sum(bool(episode.won) for episode in episodes)
    if len(episodes) == 1:
        return "solved" if solved else "failed"
    return f"{solved} of {len(episodes)} solved"


def _interest(before: TaskEpisodes | None, after: TaskEpisodes) -> int:
    start = before or after
    needed = _solved(start.with_skill) and not _solved(start.without_skill)
    return 2 * needed + _solved(after.without_skill)


def _solved(episodes: Sequence[Episode]) -> bool:
    return bool(episodes) and bool(episodes[0].won)
