"""Which transcripts a page shows, and how: a flat list grouped by task, with the skill beside without it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from skillc_gym.episodes import Episode, to_fragment
from trainers.tracking.progress import short_type

__all__ = ["TaskEpisodes", "all_tasks", "choose_tasks", "group_by_task", "transcripts_section"]


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
    def first(self) -> Episode:
        """Any of them, for what they share."""
        return self.all[0]

    def outcome(self) -> str:
        """How each condition ended, in words."""
        arms = (("with the skill", self.with_skill), ("without", self.without_skill))
        return ", ".join(f"{name} {_ended(episodes)}" for name, episodes in arms if episodes)


def group_by_task(episodes: Iterable[Episode]) -> dict[str, TaskEpisodes]:
    """Sorts a flat list of episodes by task and condition; tasks in the order of their first episode."""
    found: dict[str, tuple[list[Episode], list[Episode]]] = {}
    for episode in episodes:
        found.setdefault(episode.task_id, ([], []))[0 if episode.condition else 1].append(episode)
    return {task: TaskEpisodes(tuple(with_), tuple(without)) for task, (with_, without) in found.items()}


def choose_tasks(before: Sequence[Episode], after: Sequence[Episode], count: int = 3) -> tuple[str, ...]:
    """Picks the tasks that show most: what the skill alone solved before, and training solved without it.

    Types take turns, so that few tasks show several types; ties go by task id. At least one of the tasks holds a failed
    episode after training, if there is any.

    Args:
        before: Episodes before training; may be empty.
        after: Episodes after it.
        count: How many tasks.
    """
    first, second = group_by_task(before), group_by_task(after)
    ranked = sorted(second, key=lambda task: (-_interest(first.get(task), second[task]), task))
    taken: dict[str, int] = {}
    turns = []
    for rank, task in enumerate(ranked):
        kind = second[task].first.task_type
        taken[kind] = taken.get(kind, 0) + 1
        turns.append((taken[kind], rank, task))
    chosen = [task for _, _, task in sorted(turns)]
    failed = [task for task in chosen if not all(episode.won for episode in second[task].pair)]
    picked = chosen[:count]
    if failed and picked and failed[0] not in picked:
        picked[-1] = failed[0]
    return tuple(picked)


def transcripts_section(before: Sequence[Episode], after: Sequence[Episode], count: int = 3) -> str:
    """The chosen tasks' episodes as HTML, for a page with the style of :mod:`skillc_gym.episodes`."""
    first, second = group_by_task(before), group_by_task(after)
    parts = []
    for task in choose_tasks(before, after, count):
        shown = [("after training: " * bool(first), second[task])]
        shown += [("before training: ", first[task])] if task in first else []
        inner = "".join(
            _fold(when + found.outcome(), found.pair, open_=i == 0) for i, (when, found) in enumerate(shown)
        )
        parts.append(f"<h3>{escape(_name(second[task]))}</h3>{inner}")
    return "\n".join(parts)


def all_tasks(episodes: Sequence[Episode]) -> str:
    """Every task's episodes as HTML, folded, both conditions side by side."""
    groups: Mapping[str, TaskEpisodes] = group_by_task(episodes)
    return "\n".join(_fold(f"{_name(found)} — {found.outcome()}", found.all) for found in groups.values())


def _name(found: TaskEpisodes) -> str:
    return f"{short_type(found.first.task_type)}: {found.first.goal}"


def _fold(summary: str, episodes: Sequence[Episode], *, open_: bool = False) -> str:
    return (
        f'<details class="task"{" open" if open_ else ""}><summary>{escape(summary)}</summary>'
        f'<div class="tr">{to_fragment(list(episodes))}</div></details>'
    )


def _ended(episodes: Sequence[Episode]) -> str:
    solved = sum(bool(episode.won) for episode in episodes)
    if len(episodes) == 1:
        return "solved" if solved else "failed"
    return f"{solved} of {len(episodes)} solved"


def _interest(before: TaskEpisodes | None, after: TaskEpisodes) -> int:
    gained = before is not None and _solved(before.with_skill) and not _solved(before.without_skill)
    return 2 * int(gained) + int(_solved(after.without_skill))


def _solved(episodes: Sequence[Episode]) -> bool:
    return bool(episodes) and bool(episodes[0].won)
