"""What an update minimises: the sum of a recipe's losses over its rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import torch

from skillc_gym.errors import ConfigError
from trainers.advantages.group_baselines import SCHEMES as COMPARING
from trainers.config import TrainConfig
from trainers.engines.registry import engine_spec
from trainers.learner.setup import Backend
from trainers.losses import ClippedPolicyGradient, Loss, LossInputs, Teacher
from trainers.losses.base import Head
from trainers.losses.distillation import ForwardDistillation
from trainers.recipes.parts.curriculum import Internalization
from trainers.recipes.recipe import Recipe
from trainers.rollout.batches import MicroBatch, TrainingRow, collate_tokens, padding_row

SAMPLING_RATIO_CAP = 2.0
"""Largest factor by which a token of an inexact engine is weighted up (truncated importance sampling)."""
_OWN_FIGURES = ("tokens", "value", "teacher_cut")
"""What is logged of every loss, besides what it logs itself."""
_LEFT_OPEN = ("clip", "clip_high", "ratio", "kl_coef")
"""Settings of a run that a loss may leave open."""

Figures = Mapping[str, torch.Tensor]


class Objective:
    """Sums a recipe's losses over a micro-batch, and collects what they log until the update is over.

    The losses have the run's settings in them; ``pad_id`` fills up, and sampling is exact where the engine's
    log-probabilities are the trainer's own. ``wants`` is what a forward pass with gradient must give; ``scored`` are
    the figures of whole trajectories that the advantage scheme reads.
    """

    def __init__(
        self, losses: Sequence[Loss], pad_id: int, *, exact_sampling: bool, scored: Collection[str] = ()
    ) -> None:
        self.losses = tuple(losses)
        self.scored = frozenset(scored)
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
        return by_teacher or "ref_logprobs" in self.inputs | self.scored

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

    def has_no_gradient(self, row: TrainingRow) -> bool:
        """Whether no loss has a gradient on the row."""
        acting = [loss for loss in self.losses if row.weights.get(loss.name)]
        return all(loss.needs_advantages and not row.advantages.any() for loss in acting)

    def __call__(self, backend: Backend, batch: MicroBatch, figures: Figures, update: int) -> torch.Tensor:
        """The micro-batch's part of the objective; the parts of all micro-batches and processes add up.

        ``backend`` scores the teachers' rows; ``figures`` are those of :attr:`wants`, with gradient.
        """
        policy = self.policy_loss
        # A row that was moved behind another prompt says nothing of the policy that was played, or of who generated.
        acting = _rows_where(batch, lambda row: bool(row.weights.get(policy.name) if policy else row.weights))
        counted = batch.tokens.mask * acting[:, None]
        sums = {"entropy": (figures["entropies"].detach() * counted).sum(), "tokens": counted.sum()}
        if policy and not self.exact_sampling:
            sums |= engine_mismatch(batch, figures["logprobs"].detach(), counted)
        total: torch.Tensor | None = None
        for loss in self.losses:
            value, log = self._one(loss, backend, batch, figures, update)
            sums.update(log)
            # A token's weight times its value is summed first: the coefficient is a factor of the whole sum.
            part = value if loss.coefficient == 1.0 else loss.coefficient * value
            total = part if total is None else total + part
        assert total is not None
        sums["loss"] = total.detach()
        self._sums.append({name: value.float() for name, value in sums.items()})
        return total

    def take_log(self, backend: Backend, steps: int = 1) -> dict[str, Any]:
        """The figures of all micro-batches and processes since the last time, of so many optimiser steps.

        Losses are sums over a step, and means over the steps; the others are means per token that they are of, None
        without any, those of one name over the tokens of all its losses.
        """
        names = list(self._sums[0])
        if any(sums.keys() != self._sums[0].keys() for sums in self._sums):
            differing = sorted({name for sums in self._sums for name in sums.keys() ^ self._sums[0].keys()})
            raise ConfigError(f"A loss logs {', '.join(differing)} in some micro-batches only; log it in all, as 0")
        stacked = torch.stack([torch.stack([sums[name] for name in names]) for sums in self._sums])
        totals = dict(zip(names, backend.all_reduce_sum(stacked.sum(0)).tolist(), strict=True))
        self._sums = []
        means = {"entropy": (totals["entropy"], totals["tokens"])}
        for name, total in totals.items():
            loss, _, figure = name.partition(".")
            if figure and figure not in _OWN_FIGURES[:2]:
                before, tokens = means.get(figure, (0.0, 0.0))
                means[figure] = before + total, tokens + totals[f"{loss}.tokens"]
        log: dict[str, Any] = {"loss": totals["loss"] / steps}
        log |= {name: total / tokens if tokens else None for name, (total, tokens) in means.items()}
        if len(self.losses) > 1:
            log["losses"] = {loss.name: totals[f"{loss.name}.value"] / steps for loss in self.losses}
        return log

    def _one(
        self, loss: Loss, backend: Backend, batch: MicroBatch, figures: Figures, update: int
    ) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        inputs = loss_inputs(batch, figures, loss.name, update=update, exact_sampling=self.exact_sampling)
        cut: dict[str, torch.Tensor] = {}
        if loss.teacher is not None:
            taught = self._teach(loss, loss.teacher, backend, inputs, batch)
            inputs = inputs.with_(optional={**inputs.optional, **taught})
            # Behind a prompt without its beginning a teacher may have read no skill.
            rows = _rows_where(batch, lambda row: loss.name in row.teachers and row.teachers[loss.name].prompt_cut)
            cut = {f"{loss.name}.teacher_cut": (inputs.mask * rows[:, None]).sum()}
        result = loss(inputs)
        if wrong := [name for name in result.log if name in _OWN_FIGURES or "." in name]:
            raise ConfigError(f"The loss {loss.name} logs {wrong[0]!r}; {', '.join(_OWN_FIGURES)} and dots are taken")
        value = _weighted_sum(batch.weights[loss.name], inputs.mask, result.values)
        log = {
            f"{loss.name}.{name}": (_on_grid(figure, inputs.mask) * inputs.mask).sum().detach()
            for name, figure in result.log.items()
        }
        return value, {**log, **cut, f"{loss.name}.tokens": inputs.mask.sum(), f"{loss.name}.value": value.detach()}

    def _teach(
        self, loss: Loss, teacher: Teacher, backend: Backend, inputs: LossInputs, batch: MicroBatch
    ) -> dict[str, torch.Tensor]:
        rows = [row.teachers[loss.name] for row in batch.rows if row.weights.get(loss.name)]
        # A pass over padding keeps sharded processes in step.
        tokens = collate_tokens(rows or [padding_row().row], self.pad_id, inputs.mask.device)
        wanted = {name.removeprefix("teacher_") for name in loss.inputs if name.startswith("teacher_")}
        with torch.no_grad():
            scored = backend.score(tokens, wanted, teacher.weights)
        if not rows:
            scored = {name: value[:0] for name, value in scored.items()}
        given = {f"teacher_{name}": value for name, value in scored.items()}
        if "logprobs" in wanted:
            # Teachers' prompts have lengths of their own, so their columns are others; own tokens are the same.
            own = tokens.take(scored["logprobs"]) if rows else inputs.mask.new_zeros(0)
            given["teacher_logprobs"] = _on_grid(own, inputs.mask)
        return given


def make_objective(config: TrainConfig, recipe: Recipe, pad_id: int) -> Objective:
    """A recipe's losses, with the run's settings where it leaves them open; a UserWarning for those without effect."""
    for message in _without_effect(config, recipe):
        warnings.warn(message, stacklevel=2)
    losses = [loss.configured(**{name: getattr(config, name) for name in _LEFT_OPEN}) for loss in recipe.losses]
    return Objective(losses, pad_id, exact_sampling=samples_exactly(config), scored=recipe.advantage.inputs)


def samples_exactly(config: TrainConfig) -> bool:
    """Whether replies are drawn from the very probabilities that are trained."""
    return engine_spec(config.engine).exact_logprobs and not config.rollouts_ahead


def _without_effect(config: TrainConfig, recipe: Recipe) -> Iterator[str]:
    """A message for each setting of a run that nothing reads."""
    changed = [name for name in _LEFT_OPEN if getattr(config, name) not in (0, getattr(TrainConfig, name))]
    if changed and all(type(loss).configured is Loss.configured for loss in recipe.losses):
        given = ", ".join(f"{name}={getattr(config, name)}" for name in changed)
        yield f"{given} has no effect: {recipe.name} has no policy gradient."
    gating = recipe.curriculum.gating if isinstance(recipe.curriculum, Internalization) else None
    distils = any(isinstance(loss, ForwardDistillation) for loss in recipe.losses)
    if distils and gating is not None and gating.gate is not None and gating.gate <= 0.5:
        yield f"forward_distillation has no effect: it weighs max(0, 2 gate - 1), which is 0 with gate={gating.gate}."
    parted = getattr(recipe.advantage, "group_by", "task") == "condition" and recipe.allocation.compares
    least = 3 if parted else 2  # a rollout is compared with another one of its own condition
    if config.group_size < least and recipe.reads_advantages and type(recipe.advantage) in COMPARING:
        yield (
            f"With group_size={config.group_size} every advantage is 0: {recipe.name} compares the rollouts of a task"
            f"{' in one condition' if parted else ''}. Take a group_size of at least {least}, or method=ppo."
        )
    share = getattr(recipe.memory, "distracted_share", 0.0)
    if share > 0 and int(config.group_size * share) < 2:
        yield (
            f"distracted_share={share} of group_size={config.group_size} shows fewer than two members of a group "
            "another text: none is compared with another that was. Raise one of the two."
        )


def engine_mismatch(batch: MicroBatch, logprobs: torch.Tensor, counted: torch.Tensor) -> dict[str, torch.Tensor]:
    """How far the generating engine is from the trained model, as sums over the ``counted`` own tokens.

    The mean of ``engine_kl`` estimates KL(engine, trainer) in nats; ``engine_capped`` tokens reach the cap.
    """
    difference = batch.figures.get("old_logprobs", logprobs) - batch.figures["sampling_logprobs"]
    capped = (difference.exp() >= SAMPLING_RATIO_CAP) * counted
    found = {"engine_kl": -(difference * counted).sum(), "engine_capped": capped.sum(), "tokens": counted.sum()}
    return {f"engine.{name}": value for name, value in found.items()}


def loss_inputs(batch: MicroBatch, figures: Figures, loss: str, *, update: int, exact_sampling: bool) -> LossInputs:
    """A micro-batch as one loss sees it: rows on which it does not act have no own tokens."""
    acting = _rows_where(batch, lambda row: bool(row.weights.get(loss)))
    optional = {**batch.figures, **{name: value for name, value in figures.items() if name != "logprobs"}}
    if not exact_sampling:
        # No weight of the token: it corrects the surrogate of the policy gradient and leaves a penalty as it is.
        old = batch.figures.get("old_logprobs", figures["logprobs"].detach())
        ratio = torch.exp(old - batch.figures["sampling_logprobs"])
        optional["sampling_ratio"] = ratio.clamp(max=SAMPLING_RATIO_CAP)
    if "logits" in optional:
        row_of_token = torch.nonzero(batch.tokens.mask > 0)[:, 0]
        optional["logits"] = optional["logits"][acting[row_of_token]]
    return LossInputs(
        logprobs=figures["logprobs"],
        mask=batch.tokens.mask * acting[:, None],
        advantages=batch.advantages,
        optional=optional,
        update=update,
    )


def policy_value(
    loss: ClippedPolicyGradient, batch: MicroBatch, figures: Figures, *, exact_sampling: bool
) -> torch.Tensor:
    """The policy gradient's part of the objective alone, for measuring what a share of the advantages contributes."""
    inputs = loss_inputs(batch, figures, loss.name, update=0, exact_sampling=exact_sampling)
    return loss.coefficient * _weighted_sum(batch.weights[loss.name], inputs.mask, loss(inputs).values)


def _weighted_sum(weights: torch.Tensor, mask: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    return (weights * _on_grid(values, mask)).sum()


def _on_grid(values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Figures as (rows, tokens): losses on whole distributions give one per own token, row by row."""
    if values.dim() > 1:
        return values
    return values.new_zeros(mask.shape).masked_scatter(mask > 0, values)


def _rows_where(batch: MicroBatch, holds: Callable[[TrainingRow], bool]) -> torch.Tensor:
    return torch.tensor([holds(row) for row in batch.rows], device=batch.tokens.mask.device)


def check_reference(config: TrainConfig, *, needed: bool) -> None:
    """Refuses (ConfigError) a reference, or what moves it, where nobody asks for one."""
    if config.reference_model and not needed:
        raise ConfigError(
            f"Nothing asks for the reference {config.reference_model}; set kl_coef, or take a method whose teacher it "
            "is (method.teacher_weights=reference), or leave reference_model out."
        )
    if config.reference_sync_every and not needed:
        raise ConfigError(
            "reference_sync_every moves a reference, and with kl_coef=0 this run has none; leave one out."
        )
