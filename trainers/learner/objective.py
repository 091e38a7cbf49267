"""What an update minimises: the sum of a recipe's losses over its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from skillc_gym.errors import ConfigError
from trainers.base import TokenRow
from trainers.config import TrainConfig
from trainers.learner.backend import Backend
from trainers.losses import ClippedPolicyGradient, Loss, LossInputs, Teacher
from trainers.losses.base import Head
from trainers.rollout.collate import MicroBatch, collate_tokens
from trainers.rollout.prompts import Prompts
from trainers.rollout.training_rows import TrainingRow, padding_row

__all__ = ["SAMPLING_RATIO_CAP", "Objective", "configured", "engine_mismatch", "loss_inputs", "policy_value"]

SAMPLING_RATIO_CAP = 2.0
"""Largest factor by which a token of an inexact engine is weighted up (truncated importance sampling)."""

Figures = Mapping[str, torch.Tensor]


class Objective:
    """Sums a recipe's losses over a micro-batch, and collects what they log until the update is over.

    Args:
        losses: The recipe's losses, with the run's settings in them.
        prompts: Renders the teachers' prompts.
        pad_id: Token that fills up.
        exact_sampling: Whether the engine's log-probabilities are the trainer's own.

    Attributes:
        wants: What a forward pass with gradient must give.
    """

    def __init__(self, losses: Sequence[Loss], prompts: Prompts, pad_id: int, *, exact_sampling: bool) -> None:
        self.losses = tuple(losses)
        self.prompts = prompts
        self.pad_id = pad_id
        self.exact_sampling = exact_sampling
        self.inputs = frozenset(name for loss in losses for name in loss.inputs)
        self.wants = frozenset({"logprobs", "entropies", *(self.inputs & {"logits", *self.heads})})
        self._sums: list[dict[str, torch.Tensor]] = []

    @property
    def passes(self) -> int:
        """Micro-batches since the last :meth:`take_log`."""
        return len(self._sums)

    @property
    def needs_reference(self) -> bool:
        """Whether anybody asks for the weights that training began with."""
        by_teacher = any(loss.teacher is not None and loss.teacher.weights == "reference" for loss in self.losses)
        return by_teacher or "ref_logprobs" in self.inputs

    @property
    def average_decay(self) -> float | None:
        """Weight of the past in the moving average of the weights, None if nobody asks for one."""
        teachers = [loss.teacher for loss in self.losses if loss.teacher is not None]
        decays = {teacher.decay for teacher in teachers if teacher.weights == "average"}
        if len(decays) > 1:
            raise ConfigError(f"One run keeps one moving average of its weights; the teachers ask for {sorted(decays)}")
        return decays.pop() if decays else None

    @property
    def heads(self) -> dict[str, Head]:
        """Modules of the losses' own, by the name of the figure they give."""
        return {name: make for loss in self.losses for name, make in loss.heads.items()}

    @property
    def policy_loss(self) -> ClippedPolicyGradient | None:
        """The policy gradient among the losses, if there is one."""
        return next((loss for loss in self.losses if isinstance(loss, ClippedPolicyGradient)), None)

    def idle(self, row: TrainingRow) -> bool:
        """Whether no loss has a gradient on the row."""
        acting = [loss for loss in self.losses if row.losses.get(loss.name, 0.0)]
        return all(loss.needs_advantages and not row.advantages.any() for loss in acting)

    def __call__(self, backend: Backend, batch: MicroBatch, figures: Figures, update: int) -> torch.Tensor:
        """The micro-batch's part of the objective; the parts of all micro-batches and processes add up.

        Args:
            backend: Scores the teachers' prompts.
            batch: The micro-batch.
            figures: A forward pass over it with gradient, see :attr:`wants`.
            update: Number of the update, from 1.
        """
        weighted = batch.tokens.mask * (batch.row_weights > 0)[:, None]
        sums = {"entropy": (figures["entropies"].detach() * weighted).sum(), "tokens": weighted.sum()}
        if not self.exact_sampling:
            sums |= engine_mismatch(batch, figures["logprobs"].detach(), weighted)
        total: torch.Tensor | None = None
        for loss in self.losses:
            value, log = self._one(loss, backend, batch, figures, update)
            sums.update(log)
            part = value if loss.coefficient == 1.0 else loss.coefficient * value
            total = part if total is None else total + part
        assert total is not None
        sums["loss"] = total.detach()
        self._sums.append({name: value.float() for name, value in sums.items()})
        return total

    def take_log(self, backend: Backend) -> dict[str, Any]:
        """The figures of all micro-batches and processes since the last time: sums for losses, means per token."""
        names = list(self._sums[0])
        stacked = torch.stack([torch.stack([sums[name] for name in names]) for sums in self._sums])
        totals = dict(zip(names, backend.add_up(stacked.sum(0)).tolist(), strict=True))
        self._sums = []
        log = {"loss": totals["loss"], "entropy": totals["entropy"] / max(totals["tokens"], 1)}
        for name, total in totals.items():
            loss, _, figure = name.partition(".")
            if figure and figure not in ("tokens", "value"):
                log[figure] = total / max(totals[f"{loss}.tokens"], 1)
        if len(self.losses) > 1:
            log["losses"] = {loss.name: totals[f"{loss.name}.value"] for loss in self.losses}
        return log

    def _one(
        self, loss: Loss, backend: Backend, batch: MicroBatch, figures: Figures, update: int
    ) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        acting = torch.tensor([bool(row.losses.get(loss.name)) for row in batch.rows], device=batch.row_weights.device)
        inputs = loss_inputs(batch, figures, loss.name, acting, update=update, exact_sampling=self.exact_sampling)
        if loss.teacher is not None:
            taught = self._teach(loss, loss.teacher, backend, inputs, batch)
            inputs = inputs.with_(optional={**inputs.optional, **taught})
        result = loss(inputs)
        weights = inputs.row_weights[:, None] * inputs.mask
        value = (weights * result.values).sum()
        carrying = inputs.mask * (inputs.row_weights != 0)[:, None]
        log = {f"{loss.name}.{name}": (figure * carrying).sum().detach() for name, figure in result.log.items()}
        return value, {**log, f"{loss.name}.tokens": carrying.sum(), f"{loss.name}.value": value.detach()}

    def _teach(
        self, loss: Loss, teacher: Teacher, backend: Backend, inputs: LossInputs, batch: MicroBatch
    ) -> dict[str, torch.Tensor]:
        """Scores the rows on which a loss acts behind the teacher's prompt; the same own tokens, in the same order."""
        rows = [self._behind(row, teacher) for row in batch.rows if row.losses.get(loss.name)]
        # A pass over padding keeps sharded processes in step.
        tokens = collate_tokens(rows or [padding_row().row], self.pad_id, inputs.mask.device)
        wanted = {name.removeprefix("teacher_") for name in loss.inputs if name.startswith("teacher_")}
        with torch.no_grad():
            scored = backend.score(tokens, wanted, teacher.weights)
        if not rows:
            scored = {name: value[:0] for name, value in scored.items()}
        given = {f"teacher_{name}": value for name, value in scored.items()}
        if rows and "logprobs" in wanted:
            given["teacher_logprobs"] = inputs.per_token(scored["logprobs"][tokens.mask > 0])
        elif "logprobs" in wanted:
            given["teacher_logprobs"] = torch.zeros_like(inputs.mask)
        return given

    def _behind(self, row: TrainingRow, teacher: Teacher) -> TokenRow:
        if row.teacher_text is not None:
            return self.prompts.behind(row.row, row.teacher_text)
        text = self.prompts.skill_text(row.task_type) if teacher.prompt == "with_skill" else ""
        return self.prompts.behind(row.row, text)


def configured(loss: Loss, config: TrainConfig) -> Loss:
    """A recipe's loss with the run's settings where it leaves them open."""
    return loss.configured(clip=config.clip, beta=config.beta, clip_high=config.clip_high, ratio=config.ratio)


def engine_mismatch(batch: MicroBatch, logprobs: torch.Tensor, weighted: torch.Tensor) -> dict[str, torch.Tensor]:
    """How far the engine that generated is from the trained model.

    Args:
        batch: The micro-batch.
        logprobs: Under the trained weights, (rows, tokens).
        weighted: 1 for the own tokens that count, same shape.

    Returns:
        Sums over these tokens: ``engine_kl``, whose mean estimates KL(engine, trainer) in nats, and ``engine_capped``,
        the tokens whose ratio reaches :data:`SAMPLING_RATIO_CAP`.
    """
    difference = batch.figures.get("old_logprobs", logprobs) - batch.figures["sampling_logprobs"]
    capped = (difference.exp() >= SAMPLING_RATIO_CAP) * weighted
    found = {"engine_kl": -(difference * weighted).sum(), "engine_capped": capped.sum(), "tokens": weighted.sum()}
    return {f"engine.{name}": value for name, value in found.items()}


def loss_inputs(
    batch: MicroBatch, figures: Figures, loss: str, acting: torch.Tensor, *, update: int, exact_sampling: bool
) -> LossInputs:
    """A micro-batch as one loss sees it: rows on which it does not act have no own tokens.

    Args:
        batch: The micro-batch.
        figures: A forward pass over it.
        loss: The loss's name.
        acting: Rows on which it acts, bool (rows,).
        update: Number of the update.
        exact_sampling: Whether the engine's log-probabilities are the trainer's own.
    """
    optional = {**batch.figures, **{name: value for name, value in figures.items() if name != "logprobs"}}
    if not exact_sampling:
        old = batch.figures.get("old_logprobs", figures["logprobs"].detach())
        ratio = torch.exp(old - batch.figures["sampling_logprobs"])
        optional["sampling_ratio"] = ratio.clamp(max=SAMPLING_RATIO_CAP)
    if "logits" in optional:
        row_of_token = torch.nonzero(batch.tokens.mask > 0)[:, 0]
        optional["logits"] = optional["logits"][acting[row_of_token]]
    factor = batch.factors.get(loss)
    return LossInputs(
        logprobs=figures["logprobs"],
        mask=batch.tokens.mask * acting[:, None],
        advantages=batch.advantages,
        row_weights=batch.row_weights if factor is None else batch.row_weights * factor,
        optional=optional,
        update=update,
    )


def policy_value(
    loss: ClippedPolicyGradient, batch: MicroBatch, figures: Figures, *, exact_sampling: bool
) -> torch.Tensor:
    """The policy gradient's part of the objective alone, for measuring what a share of the advantages contributes."""
    acting = torch.ones_like(batch.row_weights, dtype=torch.bool)
    inputs = loss_inputs(batch, figures, loss.name, acting, update=0, exact_sampling=exact_sampling)
    return (inputs.row_weights[:, None] * inputs.mask * loss(inputs).values).sum()
