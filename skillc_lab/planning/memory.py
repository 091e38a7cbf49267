"""What a run takes: a GPU's memory in an update and while episodes are played, the host's, checkpoints, operations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from skillc_lab.planning.setups import GIB, Machine
from skillc_lab.planning.shapes import Arithmetic, ModelShape, layer_bytes
from trainers.config import TrainConfig
from trainers.engines import IN_PROCESS
from trainers.recipes import recipe_in
from trainers.rollout import chat_format

Phase = Literal["always", "update", "generation"]

_TILE = (4096, 32768)
"""Tokens and vocabulary of the tiles in which TRL's output layer scores tokens on a GPU."""
_OPTIMISER_BYTES = {"adamw": None, "adamw_8bit": 2, "paged_adamw_8bit": 2, "adafactor": 0, "sgd": 0}
"""Bytes of optimiser state per trained weight; None for two numbers of the weight's own type."""


@dataclass(frozen=True)
class Workload:
    """One GPU's share of an update.

    Attributes:
        kind: How numbers are held.
        rows: Rows in its largest pass.
        update_rows: Rows in all passes together.
        row_tokens: Tokens of a row, padding included.
        own_tokens: The model's own tokens among them.
        playing: Episodes that it plays at once.
        reference: Whether the weights that training began with are kept too; ``average``: their moving average.
        distributions: Whether a loss wants whole distributions over the vocabulary.
        scored: Forward passes without gradient: of the reference, of teachers, of the weights before the update.
        extra: Largest share of rows that the method adds to those of the rollouts.
    """

    kind: Arithmetic
    rows: int
    update_rows: int
    row_tokens: int
    own_tokens: int
    playing: int
    reference: bool = False
    average: bool = False
    distributions: bool = False
    scored: int = 0
    extra: float = 0.0

    @property
    def weight(self) -> int:
        """Bytes of a weight."""
        return 2 if self.kind == "bfloat16" else 4

    @property
    def compute(self) -> int:
        """Bytes of a number within linear maps and attention."""
        return 4 if self.kind == "float32" else 2


def workload_of(config: TrainConfig, shape: ModelShape, machine: Machine, row_tokens: int | None) -> Workload:
    """Reads a run's settings; rows are at most what its model takes, and ``max_context`` long if nobody says more."""
    longest = min(row_tokens or config.max_context, config.max_context, shape.max_positions or config.max_context)
    members = -(-config.tasks_per_step // machine.gpus) * config.group_size
    panel = 2 * config.panel_per_type * max(1, len(config.task_types or config.env_spec.task_types))
    steps = config.step_limit or 1
    recipe = recipe_in(config.env, config.method, config.method_options)
    extra = sum(maker.most_rows for maker in recipe.rows)
    each_turn = chat_format(config).form != "conversation" or config.thoughts == "drop"  # a row of its own
    rows = round(members * (1 + extra)) * (steps if each_turn else 1)
    losses = [loss.configured(clip=config.clip, kl_coef=config.kl_coef) for loss in recipe.losses]
    teachers = [loss.teacher.weights for loss in losses if loss.teacher is not None]
    inputs = {name for loss in losses for name in loss.inputs}
    scored = [*teachers, *(inputs & {"ref_logprobs"}), *(["old"] if config.num_minibatches > 1 else [])]
    # "auto" is autocast on a GPU.
    kinds: dict[str, Arithmetic] = {"float32": "float32", "pure_bfloat16": "bfloat16"}
    return Workload(
        kinds.get(config.precision, "autocast"),
        rows=-(-rows // (config.micro_batches * config.num_minibatches)),
        update_rows=rows,
        row_tokens=longest,
        own_tokens=min(longest, (1 if each_turn else steps) * config.max_reply_tokens),
        # A validation plays the panel in both conditions.
        playing=min(max(members, -(-panel // machine.gpus)), config.max_parallel),
        reference="ref_logprobs" in inputs | recipe.advantage.inputs or "reference" in teachers,
        average="average" in teachers,
        distributions=bool(inputs & {"logits", "teacher_logits"}),
        scored=len(scored) + bool(recipe.advantage.inputs),
        extra=extra,
    )


def update_operations(config: TrainConfig, shape: ModelShape, work: Workload) -> float:
    """Floating-point operations of an update on one GPU, every row of the planned length; generating is left out.

    A forward pass takes two per weight and token, a backward pass twice that: once for what comes before, once for the
    weights, which adapters leave out. Checkpointing computes the layers once more.
    """
    times = (2 if config.lora_rank else 3) + work.scored
    # A query looks at half of a row on average, once for the scores and once for the values.
    attention = shape.layers * shape.queries * work.row_tokens
    layers = (times + config.gradient_checkpointing) * 2.0 * work.row_tokens * (shape.maps + attention)
    return work.update_rows * (layers + times * 2.0 * work.own_tokens * shape.embedding)


# Memory --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """One part of a GPU's memory: its name, its bytes, when it is there, and how it comes about."""

    name: str
    size: float
    phase: Phase = "always"
    note: str = ""


def total_of(parts: Sequence[Part], phase: Phase) -> float:
    """Bytes in one phase of an update."""
    return sum(part.size for part in parts if part.phase in ("always", phase))


def memory_parts(config: TrainConfig, shape: ModelShape, machine: Machine, work: Workload) -> list[Part]:
    """All parts on one GPU, none of them empty."""
    kinds = (_state, _pass, _playing)
    return [part for parts in kinds for part in parts(config, shape, machine, work) if part.size > 0]


def host_bytes(config: TrainConfig, shape: ModelShape, machine: Machine, work: Workload) -> float:
    """Memory of the host: every process loads policy and reference whole before anything is sharded or sent to a GPU.

    What one process gathers for a checkpoint counts where that is more; environments and buffers come on top.
    """
    models = 1 + (work.reference and not config.lora_rank)
    loaded = machine.gpus * models * work.weight * shape.parameters
    return max(loaded, checkpoint_bytes(config, shape, machine, work) if machine.shards > 1 else 0.0)


def checkpoint_bytes(config: TrainConfig, shape: ModelShape, machine: Machine, work: Workload) -> float:
    """A checkpoint on the disk: what is trained with its optimiser's state, and whole models that move beside it."""
    trained, kind, moments = _trained(config, shape, work)
    moving = 4 * work.average + work.weight * bool(config.reference_sync_every)  # averages are kept in float32
    # Under FSDP2 accelerate writes the model beside that of transformers.
    times = 2 if machine.sharding == "fsdp2" else 1
    weights = kind * trained if config.lora_rank else times * work.weight * shape.parameters
    return weights + moments * trained + (moving + _ahead(config, work)) * shape.parameters


def _ahead(config: TrainConfig, work: Workload) -> int:
    """Bytes of each weight that plays the next update."""
    return (2 if config.precision == "bfloat16_copy" else work.weight) if config.rollouts_ahead else 0


def _trained(config: TrainConfig, shape: ModelShape, work: Workload) -> tuple[int, int, int]:
    """Trained weights, bytes of each, and bytes of optimiser state of each."""
    whole = shape.parameters if config.upper_layers is None else min(config.upper_layers, shape.layers) * shape.layer
    trained = shape.adapters(config.lora_rank) if config.lora_rank else whole
    # Adapters are float32 over weights of any type.
    kind = 4 if config.lora_rank else work.weight
    state = _OPTIMISER_BYTES[config.optimiser]
    return trained, kind, 2 * kind if state is None else state


def _state(config: TrainConfig, shape: ModelShape, machine: Machine, work: Workload) -> Iterator[Part]:
    """Weights and what goes with them."""
    weight, shards = work.weight, machine.shards
    trained, kind, moments = _trained(config, shape, work)
    adapters = kind * trained if config.lora_rank else 0
    spread = f" / {shards} GPUs" if shards > 1 else ""
    yield Part("weights", (weight * shape.parameters + adapters) / shards, note=f"{weight} bytes each{spread}")
    yield Part("gradients", kind * trained / shards, "update", f"{trained / 1e6:,.1f} M trained weights{spread}")
    yield Part("optimiser", moments * trained / shards, note=f"{config.optimiser}, {moments} bytes each{spread}")
    if machine.gpus > 1 and shards == 1:
        yield Part("communication", kind * trained, note="buckets in which gradients are averaged")
    if work.reference and not config.lora_rank:
        yield Part("reference", weight * shape.parameters / shards, note=f"the KL penalty's model{spread}")
    if work.average:
        yield Part("average", 4 * shape.parameters, note="the teacher's weights, whole, in float32")
    if config.precision == "bfloat16_copy":
        yield Part("copies", 4 * shape.parameters, note="the weights in bfloat16, to play and to learn with")
    elif machine.sharding == "fsdp2" and shards > 1 and config.engine in IN_PROCESS:
        yield Part("whole copy", weight * shape.parameters + adapters, note="the weights once more, to generate with")
    if each := _ahead(config, work):
        yield Part("copy ahead", each * shape.parameters + adapters, note="the weights that play the next update")


def _pass(config: TrainConfig, shape: ModelShape, machine: Machine, work: Workload) -> Iterator[Part]:
    """What one forward and backward pass adds."""
    layer = layer_bytes(shape, work.kind, config.lora_rank)
    if config.gradient_checkpointing:
        kept = shape.layers * shape.width * work.weight + layer
        how = "inputs of all layers, and one layer computed again"
    else:
        kept, how = shape.layers * layer, "all layers"
    added = f", {work.extra:.0%} more than the rollouts at most" if work.extra else ""
    note = f"{work.rows} rows{added} x {work.row_tokens:,} tokens, {how}"
    yield Part("activations", work.rows * work.row_tokens * kept, "update", note)
    output = _output(shape, work) + (0 if config.lora_rank else 4 * shape.embedding)
    yield Part("output layer", output, "update", "tiles of logits, and the layer's gradient in float32")
    fsdp2 = machine.sharding == "fsdp2"
    if machine.shards > 1:
        gathered = (work.weight if fsdp2 else work.compute) * 2 * shape.layer + work.weight * shape.embedding
        yield Part("gathered weights", gathered, note="two layers and the output layer")
    autocast = work.kind == "autocast" and config.precision != "bfloat16_copy"
    if autocast and (machine.shards == 1 or (fsdp2 and not config.gradient_checkpointing)):
        copies = 2 * (shape.maps + shape.embedding)
        yield Part("weights in bfloat16", copies, "update", "autocast's copies, kept until the backward pass")


def _output(shape: ModelShape, work: Workload) -> float:
    own = work.rows * work.own_tokens
    hidden = own * shape.width * work.compute
    if work.distributions:
        return hidden + 3 * 4 * own * shape.vocabulary
    return hidden + min(own, _TILE[0]) * min(shape.vocabulary, _TILE[1]) * work.compute


def _playing(config: TrainConfig, shape: ModelShape, machine: Machine, work: Workload) -> Iterator[Part]:
    """What generation takes in this process: keys and values of the episodes in progress, or vLLM's share."""
    if config.engine in IN_PROCESS:
        row = 2 * shape.layers * shape.keys * work.compute * work.row_tokens
        note = f"{work.playing} episodes x {work.row_tokens:,} tokens, with room to grow"
        # Ahead, the next update is played while this one learns.
        yield Part("KV cache", 1.5 * work.playing * row, "always" if config.rollouts_ahead else "generation", note)
    elif config.engine == "vllm" and config.vllm_mode == "colocate":
        share = config.vllm_memory * machine.gpu_memory * GIB
        note = f"vllm_memory={config.vllm_memory} of the GPU: weights and KV cache"
        yield Part("vLLM", share, "generation" if config.vllm_sleep else "always", note)
