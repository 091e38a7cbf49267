"""The method's whole state in one object: curriculum, contrast and visit counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from skillc_gym.curricula.skills import Retirement
from skillc_gym.errors import CheckpointError
from trainers.advantages import AdvantageBatch, FloatArray, get_scheme
from trainers.advantages.diagnostics import advantage_diagnostics
from trainers.advantages.observed import paired_contrasts, unpaired_contrasts
from trainers.recipes.recipe import Preset

__all__ = ["MethodState"]


class MethodState:
    """What a trainer asks of a method, and all that a checkpoint must save of it.

    Args:
        preset: The method's options.
        task_types: The task types in their fixed order.
        total_steps: Training steps of the run.

    Attributes:
        preset: The method's options.
        total_steps: Training steps of the run.
        curriculum: Gate, allocation and active set.
        contrast: The moving averages of the contrast.
    """

    def __init__(self, preset: Preset, task_types: Sequence[str], total_steps: int) -> None:
        self.preset = preset
        self.total_steps = int(total_steps)
        self.curriculum = preset.new_curriculum(task_types, self.total_steps)
        self.contrast = preset.new_contrast()
        self._visits: dict[str, int] = {}
        self._owed = dict.fromkeys(self.curriculum.task_types, 0.0)

    @property
    def task_types(self) -> tuple[str, ...]:
        """All types in the fixed order."""
        return self.curriculum.task_types

    @property
    def active(self) -> tuple[str, ...]:
        """The types whose training prompts may still hold a skill."""
        return self.curriculum.active if self.preset.uses_skills else ()

    def visits(self, task: str) -> int:
        """Number of updates so far that contained the task."""
        return self._visits.get(task, 0)

    def n_plus(self, task_type: str, group_size: int) -> int:
        """How many rollouts of the next group of this type see the skill. Ask once per group, in the groups' order."""
        active = self.curriculum.is_active(task_type)
        match self.preset.allocation:
            case "paired":
                return self.curriculum.n_plus(task_type, group_size)
            case "drawn":
                return group_size if active and self._draw(task_type) else 0
            case "whole":
                return group_size if active else 0
            case "always":
                return group_size
            case "never":
                return 0

    def advantages(self, batch: AdvantageBatch, *, streams: bool = False) -> tuple[FloatArray, dict[str, Any]]:
        """One update's advantages; moves the contrast and the visit counts.

        The update's own contrast is fed first, then the smoothed one corrects its advantages.

        Args:
            batch: The update's rollouts.
            streams: Also return each stream's share of the advantages under ``"streams"`` (they sum to them), so that
                a trainer can measure the gradient norm of each.

        Returns:
            float64[N] and JSON-able diagnostics for the log.
        """
        for kind in batch.type_of.values():
            self.curriculum.is_active(kind)
        observed = self._observe(batch)
        self.contrast.update(observed)
        corrections = {task: self.correction(task, kind) for task, kind in batch.type_of.items()}
        per_rollout = np.asarray([corrections[task] for task in batch.task], dtype=np.float64)
        parts = get_scheme(self.preset.advantage)(batch, per_rollout, self.preset.scheme_options)
        for task in batch.type_of:
            self._visits[task] = self.visits(task) + 1
        diagnostics = advantage_diagnostics(batch, parts.advantage) | self.describe()
        diagnostics["contrast_observed"] = observed
        diagnostics["correction"] = _mean_by_type(corrections, batch.type_of)
        if streams:
            diagnostics["streams"] = {
                "outcome": parts.outcome.tolist(),
                "conditional": (parts.omega * parts.conditional).tolist(),
                "correction": (parts.omega * parts.correction).tolist(),
            }
        return parts.advantage, diagnostics

    def correction(self, task: str, task_type: str) -> float:
        """``C(x) = lam(x) * max(0, delta(x))``; 0 for retired types."""
        delta = self.contrast.value(task if self.preset.key == "task" else task_type)
        return self.curriculum.lam(task_type, self.visits(task)) * max(0.0, delta)

    def validate(
        self,
        sr_with: Mapping[str, float],
        sr_without: Mapping[str, float],
        step: int,
        *,
        standard_error: Mapping[str, float] | None = None,
    ) -> tuple[Retirement, ...]:
        """Feeds one validation to the curriculum; returns who retired. See :class:`InternalizationCurriculum`."""
        return self.curriculum.update(sr_with, sr_without, step, standard_error=standard_error)

    def describe(self) -> dict[str, Any]:
        """The state in the terms of the log: gap and gate per type, the active set, the contrast (0 once retired)."""
        return {
            "gap": {k: self.curriculum.gap(k) for k in self.task_types},
            "gate": {k: self.curriculum.gate(k) for k in self.task_types},
            "active": list(self.active),
            "contrast": {}
            if self.preset.key == "task"
            else {k: self._effective_contrast(k) for k in self.contrast.keys},
        }

    def _effective_contrast(self, task_type: str) -> float:
        return self.contrast.value(task_type) if task_type in self.active else 0.0

    def state_dict(self) -> dict[str, Any]:
        """Everything a run needs to go on exactly, as JSON-able values."""
        return {
            "preset": self.preset.name,
            "options": self.preset.options,
            "total_steps": self.total_steps,
            "curriculum": self.curriculum.state_dict(),
            "contrast": self.contrast.state_dict(),
            "visits": dict(sorted(self._visits.items())),
            "owed": dict(self._owed),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores a state bit for bit.

        Raises:
            CheckpointError: The state is incomplete, or of another preset, other options, types or length of training.
        """
        missing = sorted(set(self.state_dict()) - set(state))
        if missing:
            raise CheckpointError(f"The method's state lacks {', '.join(missing)}; it is not a complete checkpoint")
        self._check_origin(state)
        self.curriculum.load_state_dict(state["curriculum"])
        self.contrast.load_state_dict(state["contrast"])
        self._visits = {task: int(count) for task, count in state["visits"].items()}
        self._owed = {kind: float(state["owed"][kind]) for kind in self.task_types}

    def _check_origin(self, state: Mapping[str, Any]) -> None:
        if state["preset"] != self.preset.name:
            raise CheckpointError(
                f"The checkpoint is of preset {state['preset']!r}, this run is {self.preset.name!r}; "
                f"resume with preset={state['preset']} or start a new run folder"
            )
        mine, theirs = self.preset.options, state["options"]
        changed = [k for k in sorted(set(mine) | set(theirs)) if mine.get(k) != theirs.get(k)]
        if changed:
            described = ", ".join(f"{k}={theirs.get(k)!r} (now {mine.get(k)!r})" for k in changed)
            raise CheckpointError(f"The checkpoint was written with other options: {described}; resume with the same")

    def _observe(self, batch: AdvantageBatch) -> dict[str, float]:
        if self.preset.allocation == "drawn":
            return unpaired_contrasts(batch)
        return paired_contrasts(batch, self.preset.key)

    def _draw(self, task_type: str) -> bool:
        # Carrying the remainder over keeps the share exact without a random stream of its own.
        self._owed[task_type] += self.curriculum.rho_with(task_type)
        chosen = self._owed[task_type] >= 0.5
        if chosen:
            self._owed[task_type] -= 1.0
        return chosen


def _mean_by_type(values: Mapping[str, float], type_of: Mapping[str, str]) -> dict[str, float]:
    kinds = sorted(set(type_of.values()))
    grouped = {kind: [values[task] for task in values if type_of[task] == kind] for kind in kinds}
    return {kind: sum(found) / len(found) for kind, found in grouped.items()}
