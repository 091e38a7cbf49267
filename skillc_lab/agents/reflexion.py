"""Reflexion (Shinn et al., arXiv 2303.11366): further tries at a failed task, a plan after each failure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from skill_library import SkillText
from skillc_gym.episodes import Episode
from skillc_lab.agents.base import ActingWriter, AgentTools, WritingAgent
from skillc_lab.agents.gathering import Reflections
from trainers.base import Count


class _Reflexion(ActingWriter):
    options: Reflexion

    def __init__(self, options: Reflexion, tools: AgentTools) -> None:
        super().__init__(options, tools)
        self._reflections = Reflections(self.writer, options.shown)

    def choose(self, info: Mapping[str, Any]) -> SkillText | None:
        return self._reflections.choose(info)

    def reflect(self, failed: Sequence[Episode]) -> None:
        if self.options.reflect:
            self._reflections.write(failed)

    def state_dict(self) -> dict[str, Any]:
        return self._reflections.state_dict()

    def figures(self) -> dict[str, Any]:
        return {**super().figures(), "plans": len(self._reflections)}


@dataclass(frozen=True)
class Reflexion(WritingAgent):
    """Retries the very tasks that are evaluated, so its figures by trial are never those of a single try.

    The paper's agent tries ten times, starts from ReAct's examples and stops a try that repeats itself; here a try is
    an episode like any other.

    Attributes:
        trials: Most tries at a task, the first included.
        shown: Plans that a try is shown, the latest ones.
        reflect: Without it nothing is written, and the further tries are mere repetitions: the control.
    """

    name: ClassVar[str] = "reflexion"
    acting = _Reflexion
    trials: Count = 3
    shown: Count = 3
    reflect: bool = True


AGENT = Reflexion()
