"""From an update's trajectories and advantages to the micro-batches of its optimiser steps."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from trainers.advantages import Advantages, FloatArray, RolloutBatch, Values
from trainers.base import Trajectory
from trainers.config import TrainConfig
from trainers.learner.backend import Backend, Weights
from trainers.learner.objective import Objective
from trainers.rollout.collate import MicroBatch, collate
from trainers.rollout.collect import derive_seed
from trainers.rollout.shared_passes import shared_passes
from trainers.rollout.training_rows import TrainingRow, deal, forward_passes, masked, weigh

__all__ = ["OwnPart", "RowAssembler"]

_BEFORE: dict[str, Weights] = {"old_logprobs": "policy", "ref_logprobs": "reference"}
"""Figures that a loss may compare with, taken before the update's first optimiser step, and whose they are."""


@dataclass(frozen=True)
class OwnPart:
    """The part of an update whose rows this process trains on.

    Attributes:
        batch: All processes' trajectories.
        numbers: This process's among them.
    """

    batch: RolloutBatch
    numbers: Sequence[int]

    @property
    def trajectories(self) -> list[Trajectory]:
        """This process's trajectories."""
        return [self.batch.trajectories[i] for i in self.numbers]

    def of(self, values: Values) -> Values:
        """This process's share of values per rollout."""
        return [values[i] for i in self.numbers]


class RowAssembler:
    """Makes training rows and stacks them.

    Args:
        config: The run's settings.
        objective: The losses, which decide what a row needs.
        pad_id: Token that fills up.
    """

    def __init__(self, config: TrainConfig, objective: Objective, pad_id: int) -> None:
        self.config = config
        self.objective = objective
        self.pad_id = pad_id

    def update(
        self, backend: Backend, own: OwnPart, advantages: Advantages, extra: Sequence[TrainingRow], update: int
    ) -> list[MicroBatch]:
        """The micro-batches of all optimiser steps, with the figures that the losses compare with.

        Args:
            backend: Scores the rows, and knows the other processes.
            own: The trajectories.
            advantages: Of all processes' trajectories.
            extra: Rows of the recipe's row makers.
            update: Number of the update; seeds the order of its rollouts.
        """
        config, steps = self.config, self.config.minibatches
        batches = []
        place_of = {number: place for place, number in enumerate(own.numbers)}
        everyone = len(own.batch.trajectories)
        # Dealt over all processes' rollouts, so that the steps do not depend on how many processes there are.
        for step, dealt in enumerate(deal(everyone, steps, derive_seed(config.seed, 2, update))):
            part = [place_of[number] for number in dealt if number in place_of]
            rows = self.rows(backend, own, advantages, part)
            rows += [_scaled(row, steps) for row in extra if _belongs(row, set(part), step)]
            batches += self.stack(backend, rows, advantages.targets)
        return [self._with_figures(backend, batch) for batch in batches]

    def rows(self, backend: Backend, own: OwnPart, advantages: Advantages, part: Sequence[int]) -> list[TrainingRow]:
        """The rows of some of this process's rollouts, weighed over all processes."""
        trajectories = own.trajectories
        tokens = sum(trajectories[i].model_tokens for i in part)
        counts = torch.tensor([len(part), tokens], device=backend.device)
        total, tokens = (int(count) for count in backend.add_up(counts))
        return weigh(
            trajectories,
            own.of(advantages.values),
            part,
            self.config.loss_aggregation,
            total=total,
            tokens=tokens,
            longest=self.config.longest_trajectory,
            losses=self._factors(own),
            targets={name: own.of(values) for name, values in advantages.targets.items()},
        )

    def stack(self, backend: Backend, rows: Sequence[TrainingRow], targets: Collection[str] = ()) -> list[MicroBatch]:
        """One optimiser step's rows as micro-batches; rows without any gradient are left out.

        Args:
            backend: Says where they go.
            rows: The rows.
            targets: Names of targets that losses ask for, also where a micro-batch has no rows.
        """
        acting = [row for row in rows if not self.objective.idle(row)]
        names = [loss.name for loss in self.objective.losses]
        passes = self._passes(acting)
        return [collate(rows, self.pad_id, backend.device, names, targets) for rows in passes]

    def scores(
        self, backend: Backend, trajectories: Sequence[Trajectory], wants: Collection[str]
    ) -> list[dict[str, FloatArray]]:
        """Figures of every own token of some trajectories, in order, by name, before any update.

        Args:
            backend: Makes the forward passes.
            trajectories: This process's.
            wants: ``logprobs``, ``ref_logprobs``, or heads by name.
        """
        rows = weigh(trajectories, [0.0] * len(trajectories), range(len(trajectories)), "token", total=1, tokens=1)
        found: dict[tuple[int, str], FloatArray] = {}
        for part in self._passes(rows):
            batch = collate(part, self.pad_id, backend.device)
            for name in sorted(wants):
                scored = zip(part, _scored(backend, batch, name), batch.tokens.mask > 0, strict=True)
                found |= {(id(row.row), name): _numbers(values[own]) for row, values, own in scored}
        return [
            {name: np.concatenate([np.zeros(0), *(found[id(row), name] for row in each.rows)]) for name in wants}
            for each in trajectories
        ]

    def _passes(self, rows: Sequence[TrainingRow]) -> list[list[TrainingRow]]:
        deal_rows = shared_passes if self.config.share_prefixes else forward_passes
        return deal_rows(rows, self.config.micro_batches)

    def _factors(self, own: OwnPart) -> list[dict[str, float]]:
        by_loss = {loss.name: loss.on_rollouts(own.batch) for loss in self.objective.losses}
        factors = [{name: float(values[i]) for name, values in by_loss.items()} for i in own.numbers]
        policy = self.objective.policy_loss
        for of_rollout, trajectory in zip(factors, own.trajectories, strict=True):
            if policy is not None and masked(trajectory, self.config.mask_truncated):
                of_rollout[policy.name] = 0.0
        return factors

    def _with_figures(self, backend: Backend, batch: MicroBatch) -> MicroBatch:
        figures = dict(batch.figures)
        for name, weights in _BEFORE.items():
            # In the first optimiser step of an update the old weights are the present ones.
            if name in self.objective.inputs and (name != "old_logprobs" or self.config.minibatches > 1):
                with torch.no_grad():
                    figures[name] = backend.score(batch.tokens, {"logprobs"}, weights)["logprobs"]
        return replace(batch, figures=figures)


def _scored(backend: Backend, batch: MicroBatch, name: str) -> torch.Tensor:
    weights: Weights = "reference" if name == "ref_logprobs" else "policy"
    figure = name.removeprefix("ref_")
    with torch.no_grad():
        return backend.score(batch.tokens, {figure}, weights)[figure]


def _numbers(values: torch.Tensor) -> FloatArray:
    return np.asarray(values.double().cpu().numpy(), dtype=np.float64)


def _scaled(row: TrainingRow, steps: int) -> TrainingRow:
    return replace(row, weight=row.weight * steps) if steps > 1 else row


def _belongs(row: TrainingRow, part: set[int], step: int) -> bool:
    return row.trajectory in part if row.trajectory >= 0 else step == 0
