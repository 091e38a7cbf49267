"""A recipe at work: curriculum, contrast, visit counts and whatever else its parts remember, in one object."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from skillc_gym.errors import CheckpointError
from trainers.advantages import Advantages, FloatArray, RolloutBatch, Signals, per_rollout
from trainers.advantages.base import check_advantages
from trainers.recipes.parts.curriculum import ContrastAverage
from trainers.recipes.recipe import Recipe, current_name


class Credit(NamedTuple):
    """What a method makes of an update's rollouts."""

    batch: RolloutBatch
    """The rollouts, with the method's signals."""
    advantages: Advantages
    """What the scheme gives."""
    log: dict[str, Any]
    """Diagnostics, JSON-able."""


class Method:
    """What a learner asks of a recipe, and all that a checkpoint must save of it but the skill memory.

    Its parts at work are the ``curriculum``, which validations update, the moving averages of the ``contrast``, and the
    ``allocator``.
    """

    def __init__(self, recipe: Recipe, task_types: Sequence[str], total_steps: int) -> None:
        self.recipe = recipe
        self.total_steps = int(total_steps)
        self.curriculum = recipe.curriculum.start(task_types, self.total_steps)
        self._contrast = recipe.contrast or ContrastAverage()
        self.contrast = self._contrast.start()
        self.allocator = recipe.allocation.start(self.curriculum)
        self._visits = Counter[str]()  # updates so far that contained a task

    @property
    def active(self) -> tuple[str, ...]:
        """The types whose training prompts may still hold a skill."""
        return self.curriculum.active if self.recipe.uses_skills else ()

    def advance(self, step: int) -> None:
        """Withdraws what a shrinking budget of skills no longer holds at a step, also between validations."""
        if self.recipe.curriculum.own_schedule:
            self.curriculum.expire(step)

    def n_plus(self, task_type: str, group_size: int) -> int:
        """How many rollouts of the next group of this type see the skill. Ask once per group, in the groups' order."""
        return self.allocator.n_plus(task_type, group_size)

    def credit(self, batch: RolloutBatch) -> Credit:
        """One update's advantages; moves contrast, visit counts and allocation.

        The update's own contrast is fed first, then the smoothed one corrects its advantages.
        """
        for kind in batch.type_of.values():
            self.curriculum.is_active(kind)  # refuses an unknown type, before anything has moved
        pairs = self.recipe.allocation.pairs
        observed = self._contrast.observed(batch, pairs=pairs) if self.recipe.contrast else {}
        self.contrast.update(observed)
        corrections = {task: self.correction(task, kind) for task, kind in batch.type_of.items()}
        batch = replace(batch, signals=self._signals(batch, corrections))
        advantages = self.recipe.advantage(batch)
        check_advantages(advantages, batch, self.recipe.advantage.name)
        self._visits.update(list(batch.type_of))
        self.allocator.observe(batch)
        diagnostics = {
            **_diagnostics(batch, per_rollout(advantages.values)),
            **self.describe(),
            "contrast_observed": observed,
            "correction": _mean_by_type(corrections, batch.type_of),
            **advantages.log,
        }
        return Credit(batch, advantages, diagnostics)

    def correction(self, task: str, task_type: str) -> float:
        """``C(x) = lam(x) * max(0, delta(x))``; 0 for retired types."""
        return self.curriculum.lam(task_type, self._visits[task]) * max(0.0, self._delta(task, task_type))

    def describe(self) -> dict[str, Any]:
        """The state in the terms of the log: gap and gate per type, the active set, the contrast (0 once retired)."""
        by_task = self._contrast.key == "task"
        return {
            "gap": {k: self.curriculum.gap(k) for k in self.curriculum.task_types},
            "gate": {k: self.curriculum.gate(k) for k in self.curriculum.task_types},
            "active": list(self.active),
            "contrast": {} if by_task else {k: self._effective_contrast(k, k) for k in self.contrast.keys},
        }

    def state_dict(self) -> dict[str, Any]:
        """Everything a run needs to go on exactly, as JSON-able values."""
        return {
            "preset": self.recipe.name,
            "options": self.recipe.options,
            "total_steps": self.total_steps,
            "curriculum": self.curriculum.state_dict(),
            "contrast": self.contrast.state_dict(),
            "visits": dict(sorted(self._visits.items())),
            "allocation": self.allocator.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores a state bit for bit; a CheckpointError if it is incomplete, or of another recipe, run or options."""
        missing = sorted(set(self.state_dict()) - set(state))
        if missing:
            raise CheckpointError(f"The method's state lacks {', '.join(missing)}; it is not a complete checkpoint")
        self._check_origin(state)
        # Methods without a curriculum once had one, whose options moved nothing.
        config = {} if self.recipe.curriculum.steers else {"config": self.curriculum.config}
        self.curriculum.load_state_dict({**state["curriculum"], **config})
        self.contrast.load_state_dict(state["contrast"])
        self._visits = Counter({task: int(count) for task, count in state["visits"].items()})
        self.allocator.load_state_dict(state["allocation"])

    def _check_origin(self, state: Mapping[str, Any]) -> None:
        if current_name(state["preset"], quietly=True) != self.recipe.name:
            raise CheckpointError(
                f"The checkpoint is of method {state['preset']!r}, this run is {self.recipe.name!r}; "
                f"resume with method={state['preset']} or start a new run folder"
            )
        mine, theirs = self.recipe.options, self.recipe.current_options(state["options"])
        changed = [k for k in sorted(mine) if mine[k] != theirs[k]]
        if changed:
            described = ", ".join(f"{k}={theirs[k]!r} (now {mine[k]!r})" for k in changed)
            raise CheckpointError(f"The checkpoint was written with other options: {described}; resume with the same")

    def _signals(self, batch: RolloutBatch, corrections: Mapping[str, float]) -> Signals:
        per_task = {
            task: (self.curriculum.gate(kind), self._effective_contrast(task, kind), corrections[task])
            for task, kind in batch.type_of.items()
        }
        return Signals(*np.asarray([per_task[task] for task in batch.task], dtype=np.float64).T)

    def _delta(self, task: str, task_type: str) -> float:
        return self.contrast.value(task if self._contrast.key == "task" else task_type)

    def _effective_contrast(self, task: str, task_type: str) -> float:
        return self._delta(task, task_type) if task_type in self.active else 0.0


def _mean_by_type(values: Mapping[str, float], type_of: Mapping[str, str]) -> dict[str, float]:
    kinds = sorted(set(type_of.values()))
    grouped = {kind: [values[task] for task in values if type_of[task] == kind] for kind in kinds}
    return {kind: sum(found) / len(found) for kind, found in grouped.items()}


def _diagnostics(batch: RolloutBatch, advantage: FloatArray) -> dict[str, Any]:
    """What the advantages really did (method, section 3); JSON-able, None where there is nothing to average."""
    with_, won, types = batch.condition, batch.success, np.asarray(batch.task_type)
    # A task may have several groups; columns alone do not tell them apart.
    numbers = [each.group for each in batch.trajectories] or [0] * len(batch.task)
    groups = set(zip(batch.task_type, batch.task, numbers, strict=True))
    counts = sorted(Counter(kind for kind, _, _ in groups).items())
    return {
        "advantage_mean": {
            "with_success": _mean_where(advantage, with_ & won),
            "with_failure": _mean_where(advantage, with_ & ~won),
            "without_success": _mean_where(advantage, ~with_ & won),
            "without_failure": _mean_where(advantage, ~with_ & ~won),
        },
        "failed_with_positive_advantage": _mean_where((advantage > 0).astype(np.float64), ~won),
        "n_plus": {kind: float(with_[types == kind].sum()) / count for kind, count in counts},
        "rollout_fraction_with": {kind: float(with_[types == kind].mean()) for kind, _ in counts},
    }


def _mean_where(values: FloatArray, where: np.ndarray) -> float | None:
    return float(values[where].mean()) if where.any() else None
