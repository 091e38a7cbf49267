"""The policy with the prompt alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from skillc_lab.agents.base import Agent
from trainers.config import TrainConfig
from trainers.evaluation import PhaseProgress, PolicyPlayer, RunningAgent


@dataclass(frozen=True)
class ZeroShot(Agent):
    """Shows nothing beside the library's skill, where that is on."""

    name: ClassVar[str] = "zero-shot"

    def around(
        self, player: PolicyPlayer, config: TrainConfig, panel: Sequence[str], phase: PhaseProgress
    ) -> RunningAgent:
        """The policy as it is."""
        return RunningAgent(player, config)


AGENT = ZeroShot()
