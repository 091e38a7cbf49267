"""How much an update computes."""

from __future__ import annotations

from skillc_lab.planning.shapes import ModelShape
from skillc_lab.planning.workload import Workload
from trainers.config import TrainConfig

__all__ = ["update_operations"]


def update_operations(config: TrainConfig, shape: ModelShape, work: Workload) -> float:
    """Floating-point operations of an update on one GPU, every row of the planned length; generating is left out.

    A forward pass takes two per weight and token, a backward pass twice that: once for what comes before, once for the
    weights, which adapters leave out. Checkpointing computes the layers once more.

    Args:
        config: The run's settings.
        shape: Its model.
        work: One GPU's share of it.
    """
    times = 2 if config.lora_rank else 3
    times += work.reference + (config.num_minibatches > 1)
    layers = (times + config.gradient_checkpointing) * _layers(shape, work)
    return work.update_rows * (layers + times * _output(shape, work))


def _layers(shape: ModelShape, work: Workload) -> float:
    """A forward pass of one row through all layers."""
    maps = shape.layers * sum(inputs * outputs for inputs, outputs in shape.linears)
    # A query looks at half of a row on average, once for the scores and once for the values.
    attention = shape.layers * shape.queries * work.row_tokens
    return 2.0 * work.row_tokens * (maps + attention)


def _output(shape: ModelShape, work: Workload) -> float:
    """The output layer, which sees the model's own tokens alone."""
    return 2.0 * work.own_tokens * shape.embedding
