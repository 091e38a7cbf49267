"""What an evaluation asks of an agent: how it plays, what it tries again, and what is written about it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from trainers.config import TrainConfig
from trainers.evaluation.paired import PairedReport
from trainers.evaluation.player import PolicyPlayer
from trainers.evaluation.trials import TrialReport
from trainers.rollout.collect import GroupRollouts

__all__ = ["PANEL_SEED", "EvaluatedAgent", "PhaseProgress", "RunningAgent", "ZeroShotRunner"]

PANEL_SEED = 4
"""What the seed of an evaluation's panel is derived for."""

PhaseProgress = Callable[[str], Callable[[int, int], object]]
"""Gives, for the name of a phase, whom to tell how many episodes are done."""


class RunningAgent(Protocol):
    """An agent around a policy, ready to play."""

    def rollouts(self) -> GroupRollouts:
        """Plays episodes that see what the agent knows now."""

    def play_trials(self, first: PairedReport) -> TrialReport | None:
        """Tries failed tasks again, if the agent does that."""

    def record(self) -> dict[str, Any]:
        """Name, options, figures and all that it knows, as JSON-able values."""

    def warning(self) -> str:
        """A sentence on what went wrong; "" if nothing did."""


class EvaluatedAgent(Protocol):
    """A way to use a policy without training it."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def trials(self) -> int:
        """Most tries at a task."""

    def around(
        self, player: PolicyPlayer, config: TrainConfig, panel: Sequence[str], phase: PhaseProgress
    ) -> RunningAgent:
        """The agent around a policy, prepared.

        Args:
            player: The policy.
            config: The settings.
            panel: The tasks to be evaluated; no agent sees them before.
            phase: Who is told of its progress.
        """


@dataclass(frozen=True)
class ZeroShotRunner:
    """The policy as it is, shown nothing but its prompt."""

    player: PolicyPlayer
    config: TrainConfig

    def rollouts(self) -> GroupRollouts:
        """The policy's own."""
        return self.player.rollouts(self.config)

    def play_trials(self, first: PairedReport) -> None:
        """It never tries again."""

    def record(self) -> dict[str, Any]:
        """Its name, and that it knows nothing."""
        own: dict[str, Any] = {"name": "zero-shot", "options": {}}
        fingerprint = hashlib.sha256(json.dumps([own, {}], sort_keys=True).encode()).hexdigest()
        return {**own, "figures": {}, "knows": {}, "fingerprint": fingerprint}

    def warning(self) -> str:
        """Nothing."""
        return ""
