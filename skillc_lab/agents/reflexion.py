"""Reflexion (Shinn et al., arXiv 2303.11366): further tries at a failed task, a plan after each failure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from skill_library import SkillText
from skillc_gym.episodes import Episode
from skillc_lab.agents.base import ActingAgent, AgentTools, WritingAgent, at_least
from skillc_lab.agents.gathering import Reflections


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
    trials: int = 3
    shown: int = 3
    reflect: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, trials=self.trials, shown=self.shown)

    def start(self, tools: AgentTools) -> _Reflexion:
        """Without a plan yet."""
        return _Reflexion(self, tools)


class _Reflexion(ActingAgent):
    options: Reflexion

    def __init__(self, options: Reflexion, tools: AgentTools) -> None:
        writer = options.new_writer(tools)
        super().__init__(options, writer)
        self._reflections = Reflections(writer, options.shown)

    def choose(self, info: Mapping[str, Any]) -> SkillText | None:
        return self._reflections.choose(info)

    def reflect(self, failed: Sequence[Episode]) -> None:
        if self.options.reflect:
            self._reflections.write(failed)

    def state_dict(self) -> dict[str, Any]:
        return self._reflections.state_dict()

    def figures(self) -> dict[str, Any]:
        return {**super().figures(), "plans": len(self._reflections)}


AGENT = Reflexion()
