"""The parts that a GPU's memory is made of, in the update and while episodes are played."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from skillc_lab.planning.activations import layer_bytes, residual_bytes
from skillc_lab.planning.machine import GIB, Machine
from skillc_lab.planning.shapes import ModelShape
from skillc_lab.planning.workload import Workload
from trainers.config import TrainConfig

__all__ = ["Part", "memory_parts", "total_of"]

Phase = Literal["always", "update", "generation"]

_TILE = (4096, 32768)
"""Tokens and vocabulary of the tiles in which TRL's output layer scores tokens on a GPU."""
_OPTIMISER_BYTES = {"adamw": None, "adamw_8bit": 2, "paged_adamw_8bit": 2, "adafactor": 0, "sgd": 0}
"""Bytes of optimiser state per trained weight; None for two numbers of the weight's own type."""


@dataclass(frozen=True)
class Part:
    """One part of a GPU's memory.

    Attributes:
        name: What it is.
        size: In bytes.
        phase: When it is there.
        note: How it comes about.
    """

    name: str
    size: float
    phase: Phase = "always"
    note: str = ""


def total_of(parts: Sequence[Part], phase: Phase) -> float:
    """Bytes in one phase of an update."""
    return sum(part.size for part in parts if part.phase in ("always", phase))


def memory_parts(config: TrainConfig, shape: ModelShape, machine: Machine, work: Workload) -> list[Part]:
    """All parts on one GPU, none of them empty."""
    found = [
        *_state(config, shape, machine, work),
        *_pass(config, shape, machine, work),
        *_playing(config, shape, work),
    ]
    if config.engine == "vllm" and config.vllm_mode == "colocate":
        share = config.vllm_memory * machine.gpu_memory * GIB
        note = f"vllm_memory={config.vllm_memory} of the GPU: weights and KV cache"
        found.append(Part("vLLM", share, "generation" if config.vllm_sleep else "always", note))
    return [part for part in found if part.size > 0]


def _state(config: TrainConfig, shape: ModelShape, machine: Machine, work: Workload) -> Iterator[Part]:
    """Weights and what goes with them."""
    weight, shards = work.arithmetic.weight, machine.shards
    trained = shape.adapters(config.lora_rank) if config.lora_rank else shape.parameters
    # Adapters are float32 over weights of any type.
    kind = 4 if config.lora_rank else weight
    state = _OPTIMISER_BYTES[config.optimiser]
    spread = f" / {shards} GPUs" if shards > 1 else ""
    adapters = 4 * trained if config.lora_rank else 0
    yield Part("weights", (weight * shape.parameters + adapters) / shards, note=f"{weight} bytes each{spread}")
    yield Part("gradients", kind * trained / shards, "update", f"{trained / 1e6:,.1f} M trained weights{spread}")
    moments = 2 * kind if state is None else state
    yield Part("optimiser", moments * trained / shards, note=f"{config.optimiser}, {moments} bytes each{spread}")
    if machine.gpus > 1 and shards == 1:
        yield Part("communication", kind * trained, note="buckets in which gradients are averaged")
    if work.reference and not config.lora_rank:
        yield Part("reference", weight * shape.parameters / shards, note=f"the KL penalty's model{spread}")
    if work.average:
        yield Part("average", weight * shape.parameters, note="the teacher's weights, whole")
    if machine.sharding == "fsdp2" and shards > 1 and config.engine == "transformers":
        yield Part("whole copy", weight * shape.parameters + adapters, note="the weights once more, to generate with")


def _pass(config: TrainConfig, shape: ModelShape, machine: Machine, work: Workload) -> Iterator[Part]:
    """What one forward and backward pass adds."""
    arithmetic = work.arithmetic
    layer = layer_bytes(shape, arithmetic, config.lora_rank)
    if config.gradient_checkpointing:
        kept = shape.layers * residual_bytes(shape, arithmetic) + layer
        how = "inputs of all layers, and one layer computed again"
    else:
        kept, how = shape.layers * layer, "all layers"
    note = f"{work.rows} rows x {work.row_tokens:,} tokens, {how}"
    yield Part("activations", work.tokens * kept, "update", note)
    output = _output(shape, work) + (0 if config.lora_rank else 4 * shape.embedding)
    yield Part("output layer", output, "update", "tiles of logits, and the layer's gradient in float32")
    if machine.shards > 1:
        gathered = arithmetic.compute * 2 * shape.layer + arithmetic.weight * shape.embedding
        yield Part("gathered weights", gathered, note="two layers and the output layer")
    elif arithmetic.kind == "autocast":
        maps = shape.layers * sum(inputs * outputs for inputs, outputs in shape.linears) + shape.embedding
        yield Part("weights in bfloat16", 2 * maps, "update", "autocast's copies, kept until the backward pass")


def _output(shape: ModelShape, work: Workload) -> float:
    own = work.rows * work.own_tokens
    hidden = own * shape.width * work.arithmetic.compute
    if work.distributions:
        return hidden + 3 * 4 * own * shape.vocabulary
    tile = min(own, _TILE[0]) * min(shape.vocabulary, _TILE[1]) * work.arithmetic.compute
    return hidden + tile


def _playing(config: TrainConfig, shape: ModelShape, work: Workload) -> Iterator[Part]:
    """Keys and values of the episodes in progress, where this process generates by itself."""
    if config.engine != "transformers":
        return
    row = 2 * shape.layers * shape.keys * work.arithmetic.compute * work.row_tokens
    note = f"{work.playing} episodes x {work.row_tokens:,} tokens, with room to grow"
    yield Part("KV cache", 1.5 * work.playing * row, "generation", note)
