"""A plan: what a run takes, whether it fits and training accepts it, and what remedies it where not."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from skillc_gym.envs.registry import check_env_options
from skillc_gym.errors import ConfigError, SkillCError, require_name
from skillc_lab.planning.memory import (
    Part,
    Workload,
    checkpoint_bytes,
    host_bytes,
    memory_parts,
    total_of,
    update_operations,
    workload_of,
)
from skillc_lab.planning.setups import GIB, Machine, typed_words
from skillc_lab.planning.shapes import ModelShape, config_of, shape_of
from trainers.base import check_sharded, load_object
from trainers.config import TrainConfig
from trainers.engines import IN_PROCESS, check_engine
from trainers.recipes import Method, recipe_in
from trainers.rollout import library_sha256, require_split
from trainers.tracking.loggers import LOGGERS


@dataclass(frozen=True)
class Remedy:
    """A change that lowers the memory: as it is typed, bytes per GPU with it, whether that fits, what it costs."""

    words: str
    total: float
    fits: bool
    note: str


@dataclass(frozen=True)
class Plan:
    """What a run takes on a machine: a GPU's share of an update, the parts of its memory, and what would lower it.

    Remedies stand each alone, then together where none is enough; there are none where the run fits.
    """

    config: TrainConfig
    machine: Machine
    shape: ModelShape
    work: Workload
    parts: Sequence[Part]
    host: float
    """Bytes on the host at the peak."""
    checkpoint: float
    """Bytes of a checkpoint on the disk."""
    operations: float
    """Floating-point operations of an update on each GPU, all rows as long as planned."""
    refusals: tuple[str, ...]
    """Why training would refuse the run, whatever its memory."""
    remedies: Sequence[Remedy] = ()

    @property
    def update(self) -> float:
        """Bytes on a GPU while weights are updated."""
        return total_of(self.parts, "update")

    @property
    def generation(self) -> float:
        """Bytes on a GPU while episodes are played."""
        return total_of(self.parts, "generation")

    @property
    def total(self) -> float:
        """Bytes on a GPU at the peak."""
        return max(self.update, self.generation)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What else will not work."""
        return tuple(_warnings(self))

    @property
    def fits(self) -> bool:
        """Whether GPU and host hold it, and training accepts it."""
        room = self.machine.host_memory
        return not self.refusals and self.total <= self.machine.usable and (room is None or self.host <= room * GIB)

    @property
    def seconds(self) -> float | None:
        """Seconds of an update, playing apart; None where the machine's speed is not known."""
        speed = self.machine.tflops
        return None if speed is None else self.operations / (speed * 1e12)

    def to_json(self) -> dict[str, Any]:
        """All figures as JSON-able values, sizes in GiB."""
        sizes = {name: getattr(self, name) / GIB for name in ("update", "generation", "host", "checkpoint")}
        return {
            "model": self.config.model,
            "parameters": self.shape.parameters,
            **{name: getattr(self.machine, name) for name in ("gpus", "gpu_memory", "sharding")},
            **{name: getattr(self.work, name) for name in ("rows", "row_tokens", "scored", "extra")},
            "parts": {p.name: {"gib": p.size / GIB, "phase": p.phase, "note": p.note} for p in self.parts},
            **sizes,
            "usable": self.machine.usable / GIB,
            **{name: getattr(self, name) for name in ("operations", "seconds", "fits", "refusals", "warnings")},
            "remedies": [{**vars(remedy), "total": remedy.total / GIB} for remedy in self.remedies],
        }

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def _lines(plan: Plan) -> Iterator[str]:
    machine, config, work = plan.machine, plan.config, plan.work
    yield (
        f"{config.model}: {plan.shape.parameters / 1e6:,.0f} M parameters on {machine.gpus} x "
        f"{machine.gpu_memory:g} GiB, sharding {machine.sharding}, engine {config.engine}, method {config.method}\n"
    )
    for part in plan.parts:
        when = "" if part.phase == "always" else f" ({part.phase})"
        yield _size(part.name + when, part.size, part.note)
    yield "\n" + _size("in the update", plan.update)
    yield _size("while episodes are played", plan.generation)
    yield _size("a GPU has", machine.usable, f"{machine.reserve:.0%} left to driver and fragmentation")
    models = "policy and reference" if work.reference and not config.lora_rank else "the policy"
    yield _size("the host needs", plan.host, f"every process loads {models}; environments and buffers on top")
    most = min(config.keep_checkpoints, -(-config.steps // config.save_every)) + 1
    seconds = plan.checkpoint / (machine.disk * 1e9)
    note = f"{seconds:,.0f} s at {machine.disk:g} GB/s every {config.save_every} updates; {most} at most on the disk"
    yield _size("a checkpoint", plan.checkpoint, note)
    scored = f", {work.scored} of its passes without gradient" if work.scored else ""
    yield f"  {'an update computes':<28}{plan.operations / 1e12:8,.0f} TFLOP a GPU at most{scored}, {_time(plan)}\n"
    yield from (f"Training refuses it: {refusal}" for refusal in plan.refusals)
    yield "It fits." if plan.fits else "It does not fit. What lowers it:" if plan.remedies else "It will not run."
    for remedy in plan.remedies:
        verdict = "fits" if remedy.fits else "not enough"
        yield f"  {remedy.total / GIB:8.2f} GiB  {verdict:<11}{remedy.words}  ({remedy.note})"
    yield from (f"Warning: {warning}" for warning in plan.warnings)


def _size(name: str, size: float, note: str = "") -> str:
    return f"  {name:<28}{size / GIB:8.2f} GiB   {note}".rstrip()


def _time(plan: Plan) -> str:
    if plan.seconds is None:
        return "skillc gpu-check measures at what speed (--tflops)"
    hours = plan.seconds * plan.config.steps / 3600
    return f"{plan.seconds:,.1f} s; {hours:,.1f} h for {plan.config.steps} of them, playing and validations apart"


def make_plan(
    config: TrainConfig, machine: Machine, *, row_tokens: int | None = None, shape: ModelShape | None = None
) -> Plan:
    """Plans a run of rows of ``max_context``, the worst case, or shorter ones; no weights are loaded or fetched."""
    shape = shape or shape_of(config_of(config))
    plan = _plain(config, machine, shape, row_tokens)
    return plan if plan.fits or plan.refusals else replace(plan, remedies=tuple(_remedies(plan, row_tokens)))


def _plain(config: TrainConfig, machine: Machine, shape: ModelShape, row_tokens: int | None) -> Plan:
    work = workload_of(config, shape, machine, row_tokens)
    return Plan(
        config,
        machine,
        shape,
        work,
        memory_parts(config, shape, machine, work),
        host=host_bytes(config, shape, machine, work),
        checkpoint=checkpoint_bytes(config, shape, machine, work),
        operations=update_operations(config, shape, work),
        refusals=tuple(_refusals(config, machine, shape, work)),
    )


def _refusals(config: TrainConfig, machine: Machine, shape: ModelShape, work: Workload) -> Iterator[str]:
    from trainers.engines import check_vllm  # these bring torch, which other commands do without
    from trainers.learner import check_reference, check_run

    recipe = recipe_in(config.env, config.method, config.method_options)
    checks: list[Callable[[], object]] = [
        partial(check_engine, config.engine, config.engine_options, training=True),
        partial(check_env_options, config.env_id, config.env_kwargs),
        partial(check_run, config, recipe, machine.gpus),
        partial(require_split, config),
        partial(_require_types, config),
        partial(_require_extensions, config),
        partial(library_sha256, config),  # reads its files
        partial(check_reference, config, needed=work.reference),
        partial(Method(recipe, ("any",), config.steps).n_plus, "any", config.group_size),
    ]
    if config.engine == "vllm":
        checks.append(partial(check_vllm, config, machine.gpus))
    sharded = machine.sharding != "none"
    if sharded:
        heads = {name for loss in recipe.losses for name in loss.heads}
        checks.append(partial(check_sharded, heads, bool(config.reference_sync_every)))
    for check in checks:
        try:
            check()
        except SkillCError as error:
            yield str(error)
    if (config.upper_layers or 0) > shape.layers:
        yield f"trained_layers={config.trained_layers}, and the model has {shape.layers} layers; take fewer, or all."
    if config.engine in IN_PROCESS and config.attention not in ("sdpa", "eager"):
        yield f"engine={config.engine} needs masks, which {config.attention} does not take; generate with engine=vllm."
    if sharded and config.precision == "bfloat16_copy":
        yield "precision=bfloat16_copy needs whole weights in every process; shard with bfloat16."
    if machine.sharding == "zero3":
        yield from _refused_by_deepspeed(config, {loss.teacher.weights for loss in recipe.losses if loss.teacher})


def _require_types(config: TrainConfig) -> None:
    named = config.env_spec.task_types
    for kind in config.task_types or () if named else ():
        require_name("task type", kind, (*named, *named.values()))


def _require_extensions(config: TrainConfig) -> None:
    for path in config.metrics:
        load_object(path, "metric")
    for path in config.env_wrappers:
        load_object(path, "wrapper")
    for name in config.report_to:
        LOGGERS.get(name)


def _refused_by_deepspeed(config: TrainConfig, teachers: Container[str]) -> Iterator[str]:
    if config.engine in IN_PROCESS:
        yield "Weights that DeepSpeed has sharded cannot generate in place; use engine=vllm."
    if config.precision == "pure_bfloat16":
        yield "DeepSpeed trains weights in float32 whatever they are loaded in; take precision=bfloat16."
    if "average" in teachers:
        yield "A teacher that averages the weights needs them whole; shard with fsdp2."


def _warnings(plan: Plan) -> Iterator[str]:
    config, machine, shape = plan.config, plan.machine, plan.shape
    if config.engine == "vllm" and config.vllm_mode == "colocate":
        row = 2 * 2 * shape.layers * shape.keys * plan.work.row_tokens
        least = (2 * shape.parameters + row) / config.vllm_tensor_parallel
        share = config.vllm_memory * machine.gpu_memory * GIB
        if least > share:
            yield (
                f"vllm_memory={config.vllm_memory} is {share / GIB:.1f} GiB; vLLM's weights in bfloat16 and the keys "
                f"and values of one row take {least / GIB:.1f} GiB."
            )
    if machine.host_memory is not None and plan.host > machine.host_memory * GIB:
        yield (
            f"The host has {machine.host_memory:g} GiB, and {machine.gpus} processes load {plan.host / GIB:,.0f} GiB; "
            "take fewer processes on a machine, lora_rank, kl_coef=0 or precision=pure_bfloat16."
        )


# Remedies ------------------------------------------------------------------------------------------------------------


def _remedies(plan: Plan, row_tokens: int | None) -> Iterator[Remedy]:
    """Each change alone, then as many as are needed, those first that do not change what is learned."""
    changes, fits = list[_Change](), False
    for change in _changes(plan):
        with suppress(ConfigError):  # what does not go with the run's settings, or with the changes before it
            alone = _remedied(plan, [change], row_tokens)
            fits = fits or alone.fits
            yield alone
            _remedied(plan, [*changes, change], row_tokens)
            changes.append(change)
    if fits:
        return
    for count in range(2, len(changes) + 1):
        remedy = _remedied(plan, changes[:count], row_tokens)
        if remedy.fits or count == len(changes):
            yield remedy
            return


class _Change(NamedTuple):
    note: str
    settings: dict[str, Any]
    machine: Mapping[str, Any] = {}

    @property
    def words(self) -> str:
        return " ".join([*typed_words(self.settings), *(f"--{name} {value}" for name, value in self.machine.items())])


def _changes(plan: Plan) -> Iterator[_Change]:
    config, machine, work = plan.config, plan.machine, plan.work
    sharded = replace(machine, sharding="fsdp2")
    if work.rows > 1:
        yield _Change("one row per pass: more and smaller passes", {"micro_batches": config.micro_batches * work.rows})
    if not config.gradient_checkpointing:
        yield _Change("a second forward pass", {"gradient_checkpointing": True})
    if machine.gpus > 1 and machine.shards == 1 and not any(_refusals(config, sharded, plan.shape, work)):
        yield _Change("weights are gathered layer by layer", {}, {"sharding": "fsdp2"})
    if config.engine == "vllm" and config.vllm_mode == "colocate" and not config.vllm_sleep:
        yield _Change("vLLM gives its memory back during updates; waking it costs a copy", {"vllm_sleep": True})
    if config.optimiser == "adamw" and not config.lora_rank:
        yield _Change("AdamW's moments in bytes; needs bitsandbytes", {"optimiser": "adamw_8bit"})
    if not config.lora_rank and not config.reference_sync_every:
        yield _Change("trains adapters alone", {"lora_rank": 32})
    if config.precision != "pure_bfloat16":
        yield _Change("loses updates at small learning rates, but for adapters", {"precision": "pure_bfloat16"})


def _remedied(plan: Plan, changes: Sequence[_Change], row_tokens: int | None) -> Remedy:
    config, machine = plan.config, plan.machine
    for change in changes:
        config, machine = config.with_(**change.settings), replace(machine, **change.machine)
    found = _plain(config, machine, plan.shape, row_tokens)
    words = " ".join(change.words for change in changes)
    return Remedy(words, found.total, found.fits, changes[0].note if len(changes) == 1 else "all of these together")
