"""Plans that are written after failures, for further tries at the same task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from skill_library import SkillText
from skillc_gym.episodes import Episode
from skillc_lab.agents.base import note
from trainers.writers import AgentWriter

__all__ = ["Reflections"]


class Reflections:
    """The plans of every task and condition, the oldest first.

    Args:
        writer: Writes them.
        shown: How many of the latest a try is shown.
    """

    def __init__(self, writer: AgentWriter, shown: int) -> None:
        self._writer, self._shown = writer, shown
        self._plans: dict[str, list[str]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._plans.values()))

    def write(self, failed: Sequence[Episode]) -> None:
        """Writes a plan for each failed episode; where that fails, the next try has the earlier ones alone."""
        earlier = [tuple(self._plans.get(_key(vars(episode)), ())) for episode in failed]
        for episode, plan in zip(failed, self._writer.reflect(failed, earlier) if failed else (), strict=True):
            if plan is not None:
                self._plans.setdefault(_key(vars(episode)), []).append(plan)

    def choose(self, info: Mapping[str, Any]) -> SkillText | None:
        """The latest plans for a task in its condition."""
        plans = self._plans.get(_key(info), [])
        if not plans:
            return None
        text = "\n\n".join(["Plans from earlier tries at this task:", *plans[-self._shown :]])
        return note(f"reflection-{len(plans)}", text)

    def state_dict(self) -> dict[str, Any]:
        """The plans by condition and task."""
        return {"plans": {key: list(plans) for key, plans in self._plans.items()}}


def _key(values: Mapping[str, Any]) -> str:
    return f"{int(values.get('condition', 0))} {values['task_id']}"
