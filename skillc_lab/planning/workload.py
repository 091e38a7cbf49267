"""What of a run's settings decides its memory: rows, tokens, precision, what is held beside the policy."""

from __future__ import annotations

from dataclasses import dataclass

from skillc_lab.planning.activations import Arithmetic, Kind
from skillc_lab.planning.machine import Machine
from skillc_lab.planning.shapes import ModelShape
from trainers.config import TrainConfig
from trainers.recipes import recipe_in

__all__ = ["Workload", "workload_of"]


@dataclass(frozen=True)
class Workload:
    """One GPU's share of an update.

    Attributes:
        arithmetic: How numbers are held.
        rows: Rows in its largest pass.
        update_rows: Rows in all passes together.
        row_tokens: Tokens of a row, padding included.
        own_tokens: The model's own tokens among them.
        playing: Episodes that it plays at once.
        reference: Whether weights that training began with are kept beside.
        average: Whether a moving average of the weights is kept beside.
        distributions: Whether a loss wants whole distributions over the vocabulary.
    """

    arithmetic: Arithmetic
    rows: int
    update_rows: int
    row_tokens: int
    own_tokens: int
    playing: int
    reference: bool = False
    average: bool = False
    distributions: bool = False

    @property
    def tokens(self) -> int:
        """Tokens of the largest pass."""
        return self.rows * self.row_tokens


def workload_of(config: TrainConfig, shape: ModelShape, machine: Machine, row_tokens: int | None = None) -> Workload:
    """Reads a run's settings.

    Args:
        config: The run's.
        shape: Its model; rows are at most what it takes.
        machine: Where it shall run.
        row_tokens: Longest row that is expected; ``max_context`` if None.
    """
    longest = min(row_tokens or config.max_context, config.max_context, shape.max_positions or config.max_context)
    members = -(-config.tasks_per_step // machine.gpus) * config.group_size
    passes = config.micro_batches * config.num_minibatches
    steps = config.step_limit or 1
    rows = members * (1 if config.form == "conversation" else steps)
    losses = [
        loss.configured(clip=config.clip, beta=config.kl_coef)
        for loss in recipe_in(config.env, config.method, config.method_options).losses
    ]
    teachers = [loss.teacher.weights for loss in losses if loss.teacher is not None]
    inputs = {name for loss in losses for name in loss.inputs}
    return Workload(
        Arithmetic(_kind(config)),
        rows=-(-rows // passes),
        update_rows=rows,
        row_tokens=longest,
        own_tokens=min(longest, steps * config.max_reply_tokens),
        playing=min(members, config.max_parallel),
        reference="ref_logprobs" in inputs or "reference" in teachers,
        average="average" in teachers,
        distributions=bool(inputs & {"logits", "teacher_logits"}),
    )


def _kind(config: TrainConfig) -> Kind:
    """What a GPU does: "auto" is bfloat16 there."""
    kinds: dict[str, Kind] = {"float32": "float32", "pure_bfloat16": "bfloat16"}
    return kinds.get(config.precision, "autocast")
