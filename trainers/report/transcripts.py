"""Which transcripts a report shows, and how: with the skill beside without it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from skillc_gym.episodes import Episode, to_fragment
from trainers.tracking.progress import short_type

__all__ = ["choose_tasks", "transcripts_section"]

Pairs = dict[str, tuple[Episode, Episode]]


def choose_tasks(before: Sequence[Episode], after: Sequence[Episode], count: int = 3) -> tuple[str, ...]:
    """Picks the tasks that show most: what the skill alone solved before, and training solved without it.

    Types take turns, so that few tasks show several types; ties go by task id.

    Args:
        before: Episodes before training; may be empty.
        after: Episodes after it.
        count: How many tasks.
    """
    first, second = _pairs(before), _pairs(after)
    ranked = sorted(second, key=lambda task: (-_telling(first.get(task), second[task]), task))
    taken: dict[str, int] = {}
    turns = []
    for rank, task in enumerate(ranked):
        kind = second[task][0].task_type
        taken[kind] = taken.get(kind, 0) + 1
        turns.append((taken[kind], rank, task))
    return tuple(task for _, _, task in sorted(turns)[:count])


def transcripts_section(before: Sequence[Episode], after: Sequence[Episode], count: int = 3) -> str:
    """The chosen tasks' episodes as HTML, for a page with the style of :mod:`skillc_gym.episodes`."""
    first, second = _pairs(before), _pairs(after)
    parts = []
    for task in choose_tasks(before, after, count):
        pairs = [("after training", second[task])] + ([("before training", first[task])] if task in first else [])
        inner = "".join(_fold(when, pair, open_=i == 0) for i, (when, pair) in enumerate(pairs))
        episode = second[task][0]
        parts.append(f"<h3>{escape(short_type(episode.task_type))}: {escape(episode.goal)}</h3>{inner}")
    return "\n".join(parts)


def _fold(when: str, pair: tuple[Episode, Episode], *, open_: bool) -> str:
    with_, without = ("solved" if episode.won else "failed" for episode in pair)
    summary = f"{when}: with the skill {with_}, without {without}"
    return (
        f'<details class="pair"{" open" if open_ else ""}><summary>{summary}</summary>'
        f'<div class="tr">{to_fragment(list(pair))}</div></details>'
    )


def _pairs(episodes: Sequence[Episode]) -> Pairs:
    by_task: dict[str, dict[int, Episode]] = {}
    for episode in episodes:
        by_task.setdefault(episode.task_id, {})[episode.condition] = episode
    return {task: (found[1], found[0]) for task, found in by_task.items() if len(found) == 2}


def _telling(before: tuple[Episode, Episode] | None, after: tuple[Episode, Episode]) -> int:
    gained = before is not None and before[0].won and not before[1].won
    return 2 * int(gained) + int(bool(after[1].won))
