"""An agent around the configured policy: what it may use, how its episodes are played, and its record."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import gymnasium

from skillc_gym.episodes import Episode
from skillc_gym.errors import ConfigError
from skillc_lab.agents import Agent, AgentTools
from skillc_lab.agents.base import Choose
from skillc_lab.agents.notes import ShowNotes
from trainers.config import TrainConfig
from trainers.evaluation.agents import PANEL_SEED, PhaseProgress
from trainers.evaluation.paired_report import PairedReport
from trainers.evaluation.player import PolicyPlayer
from trainers.evaluation.trials import TrialReport, play_trials
from trainers.rollout import tasks_of
from trainers.rollout.collect import GroupRollouts, derive_seed

__all__ = ["ActedPolicy"]

_GATHERING_SEED, _WRITER_SEED = 6, 7
"""What the seeds of the preparation and of the writer are derived for."""


class ActedPolicy:
    """Prepares an agent, and plays with it.

    Args:
        agent: The agent.
        player: The policy.
        config: The settings.
        panel: The tasks to be evaluated; no agent sees them before.
        phase: Gives, for the name of a phase, whom to tell how many episodes are done.
    """

    def __init__(
        self, agent: Agent, player: PolicyPlayer, config: TrainConfig, panel: Sequence[str], phase: PhaseProgress
    ) -> None:
        self._player, self._config, self._panel, self._phase = player, config, tuple(panel), phase
        self._training = config.with_(split=config.env_spec.training_split)
        self._sampling = config.eval_sampling
        self._label = hashlib.sha256(json.dumps(agent.record(), sort_keys=True).encode()).hexdigest()
        self.acting = agent.start(self._tools())
        self.acting.prepare()

    def rollouts(self) -> GroupRollouts:
        """Plays episodes that see what the agent knows now."""
        if not self.acting.shows:
            return self._player.rollouts(self._config)
        wrappers = [partial(ShowNotes, choose=self.acting.choose)]
        return self._player.rollouts(self._config, wrappers, label=self.acting.fingerprint())

    def play_trials(self, first: PairedReport) -> TrialReport | None:
        """Tries failed tasks again, if the agent does that."""
        trials = self.acting.options.trials
        return play_trials(first, trials, self._retry, self.acting.reflect) if trials > 1 else None

    def record(self) -> dict[str, Any]:
        """Name, options, figures and all that it knows, as JSON-able values."""
        return {
            **self.acting.options.record(),
            "figures": self.acting.figures(),
            "knows": self.acting.state_dict(),
            "fingerprint": self.acting.fingerprint(),
        }

    def warning(self) -> str:
        """A sentence on replies of the writer that could not be read, and on what to do; "" if there were none."""
        bad = 0 if self.acting.writer is None else self.acting.writer.bad_replies
        return (
            f"{bad} replies of the policy as the agent's writer could not be read and were passed over. "
            "--agent.writer steps writes by rule"
            if bad
            else ""
        )

    def _tools(self) -> AgentTools:
        return AgentTools(
            spec=self._config.env_spec,
            training_tasks=lambda: self._training_tasks,
            make_env=partial(gymnasium.make, self._training.env_id, **self._training.env_kwargs),
            play=self._gather,
            write=self._player.chat(derive_seed(self._config.seed, _WRITER_SEED)),
            writes=self._player.writes,
            seed=self._config.seed,
        )

    @cached_property
    def _training_tasks(self) -> Mapping[str, str]:
        evaluated = set(self._panel)
        left = {task: kind for task, kind in sorted(tasks_of(self._training).items()) if task not in evaluated}
        if not left:
            raise ConfigError(
                f"The agent learns from tasks of the split {self._training.split!r}, and all of them are to be "
                "evaluated; evaluate another split, or a panel of fewer tasks (--per-type)"
            )
        return left

    def _gather(self, task_ids: Sequence[str], choose: Choose, attempt: int) -> list[Episode]:
        numbers = {task: number for number, task in enumerate(self._training_tasks)}
        rollouts = self._player.rollouts(
            self._training, [partial(ShowNotes, choose=choose)], f"{self._label} {attempt}", preparing=True
        )
        rollouts.on_progress = self._phase("training episodes")
        seed = derive_seed(self._config.seed, _GATHERING_SEED)
        return self._collect(rollouts, [(task, 0, numbers[task]) for task in task_ids], seed, attempt)

    def _retry(self, trial: int, tasks: Sequence[tuple[str, int]]) -> list[Episode]:
        numbers = {task: number for number, task in enumerate(self._panel)}
        rollouts = self.rollouts()
        rollouts.on_progress = self._phase(f"episodes of trial {trial}")
        seed = derive_seed(self._config.seed, PANEL_SEED)
        return self._collect(rollouts, [(task, skill, numbers[task]) for task, skill in tasks], seed, trial - 1)

    def _collect(
        self, rollouts: GroupRollouts, tasks: Sequence[tuple[str, int, int]], seed: int, attempt: int
    ) -> list[Episode]:
        """Plays (task, condition, number) once each; the number gives a task the same start in every attempt."""
        try:
            played = rollouts.collect(
                [task for task, _, _ in tasks],
                [skill for _, skill, _ in tasks],
                1,
                seed=seed,
                sampling=self._sampling,
                numbers=[number for _, _, number in tasks],
                first_attempt=attempt,
            )
        finally:
            rollouts.close()
        return [result.episode for result in played]
