"""From an update's trajectories and advantages to the micro-batches of its optimiser steps."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch

from trainers.advantages import Advantages, FloatArray, RolloutBatch
from trainers.base import Trajectory
from trainers.engines.random import Purpose, derive_seed
from trainers.learner.objective import Objective
from trainers.learner.setup import Backend, Setup
from trainers.losses.base import Weights
from trainers.rollout.batches import (
    MicroBatch,
    TrainingRow,
    collate,
    forward_passes,
    is_masked,
    make_training_rows,
    shared_passes,
    split_minibatches,
)

_BEFORE: dict[str, Weights] = {"old_logprobs": "policy", "ref_logprobs": "reference"}
"""Figures that a loss may compare with, taken before the update's first optimiser step, and whose they are."""


def own_rollouts(batch: RolloutBatch, backend: Backend) -> list[int]:
    """The rollouts that this process has played and trains on, by number: groups go round the processes."""
    own, processes = backend.process_index, backend.num_processes
    return [i for i, each in enumerate(batch.trajectories) if each.group % processes == own]


class RowAssembler:
    """Makes training rows, by what the objective's losses need, and stacks them."""

    def __init__(self, setup: Setup, objective: Objective, backend: Backend) -> None:
        self.config, self.prompts, self.pad_id = setup.config, setup.prompts, setup.pad_id
        self.objective, self.backend = objective, backend

    def optimiser_steps(
        self, batch: RolloutBatch, advantages: Advantages, extra: Sequence[TrainingRow], update: int
    ) -> list[list[MicroBatch]]:
        """This process's micro-batches of each optimiser step, with the figures that the losses compare with.

        ``advantages`` are of all processes' trajectories, ``extra`` the rows of the recipe's row makers; ``update``
        seeds the order of its rollouts.
        """
        own, made = own_rollouts(batch, self.backend), []
        place_of = {number: place for place, number in enumerate(own)}
        everyone, seed = len(batch.trajectories), derive_seed(self.config.seed, Purpose.ORDER, update)
        # Split over all processes' rollouts, so that the steps do not depend on how many processes there are.
        for step, dealt in enumerate(split_minibatches(everyone, self.config.num_minibatches, seed)):
            part = [place_of[number] for number in dealt if number in place_of]
            rows = self.rows(batch, own, advantages, part)
            # Rows that no rollout has brought belong to the first step.
            here = {*part, *([] if step else [-1])}
            rows += [self._masked(row, batch, own) for row in extra if row.trajectory in here]
            made.append(self.stack(rows, advantages.targets))
        return [[self._with_figures(each) for each in step] for step in made]

    def rows(
        self, batch: RolloutBatch, own: Sequence[int], advantages: Advantages, part: Sequence[int]
    ) -> list[TrainingRow]:
        """The rows of a ``part`` of this process's ``own`` rollouts, by their places there; weighed over all."""
        trajectories = [batch.trajectories[i] for i in own]
        counts = torch.tensor([len(part), sum(trajectories[i].model_tokens for i in part)], device=self.backend.device)
        total, tokens = (int(count) for count in self.backend.all_reduce_sum(counts))
        by_loss = {loss.name: loss.on_rollouts(batch) for loss in self.objective.losses}
        acting = [{name: float(values[i]) for name, values in by_loss.items()} for i in own]
        return make_training_rows(
            trajectories,
            [advantages.values[i] for i in own],
            part,
            self.config.loss_aggregation,
            total=total,
            tokens=tokens,
            longest=self.config.longest_trajectory,
            factors=list(map(self._unless_cut, acting, trajectories)),
            targets={name: [values[i] for i in own] for name, values in advantages.targets.items()},
        )

    def stack(self, rows: Sequence[TrainingRow], targets: Collection[str] = ()) -> list[MicroBatch]:
        """A step's rows as micro-batches with teachers and ``targets``; rows without gradient are left out."""
        acting = [self._with_teachers(row) for row in rows if not self.objective.has_no_gradient(row)]
        names = [loss.name for loss in self.objective.losses]
        return [collate(rows, self.pad_id, self.backend.device, names, targets) for rows in self._passes(acting)]

    def scores(self, trajectories: Sequence[Trajectory], wants: Collection[str]) -> list[dict[str, FloatArray]]:
        """Figures (``logprobs``, ``ref_logprobs``, or heads by name) of every own token of trajectories, in order."""
        everyone = range(len(trajectories))
        rows = make_training_rows(trajectories, [0.0] * len(everyone), everyone, "token", total=1, tokens=1)
        found: dict[tuple[int, str], FloatArray] = {}
        for part in self._passes(rows):
            batch = collate(part, self.pad_id, self.backend.device)
            for name in sorted(wants):
                weights: Weights = "reference" if name == "ref_logprobs" else "policy"
                scored = self._scored(batch, name.removeprefix("ref_"), weights).double().cpu().numpy()
                every = zip(part, scored, (batch.tokens.mask > 0).cpu().numpy(), strict=True)
                found |= {(id(row.row), name): values[own] for row, values, own in every}
        return [
            {name: np.concatenate([np.zeros(0), *(found[id(row), name] for row in each.rows)]) for name in wants}
            for each in trajectories
        ]

    def _passes(self, rows: Sequence[TrainingRow]) -> list[list[TrainingRow]]:
        split = shared_passes if self.config.share_prefixes else forward_passes
        return split(rows, self.config.micro_batches)

    def _masked(self, row: TrainingRow, batch: RolloutBatch, own: Sequence[int]) -> TrainingRow:
        """A row maker's row: cut trajectories are left out here, too."""
        if row.trajectory < 0:
            return row
        return replace(row, weights=self._unless_cut(row.weights, batch.trajectories[own[row.trajectory]]))

    def _unless_cut(self, weights: Mapping[str, float], trajectory: Trajectory) -> dict[str, float]:
        """Weights in losses; where the trajectory is masked, 0 in all but a critic's, which teaches no words."""
        if not is_masked(trajectory, self.config.mask_truncated):
            return dict(weights)
        critics = {loss.name for loss in self.objective.losses if loss.heads and loss is not self.objective.policy_loss}
        return {name: value if name in critics else 0.0 for name, value in weights.items()}

    def _with_teachers(self, row: TrainingRow) -> TrainingRow:
        teachers = dict(row.teachers)
        for loss in self.objective.losses:
            if loss.teacher is not None and row.weights.get(loss.name) and loss.name not in teachers:
                text = self.prompts.skill_text(row.task_type) if loss.teacher.prompt == "with_skill" else ""
                teachers[loss.name] = self.prompts.with_skill_text(row.row, text)
        return replace(row, teachers=teachers)

    def _with_figures(self, batch: MicroBatch) -> MicroBatch:
        figures = dict(batch.figures)
        for name, weights in _BEFORE.items():
            # In the first optimiser step of an update the old weights are the present ones.
            if name in self.objective.inputs and (name != "old_logprobs" or self.config.num_minibatches > 1):
                figures[name] = self._scored(batch, "logprobs", weights)
        return replace(batch, figures=figures)

    @torch.no_grad()
    def _scored(self, batch: MicroBatch, figure: str, weights: Weights) -> torch.Tensor:
        return self.backend.score(batch.tokens, {figure}, weights)[figure]
