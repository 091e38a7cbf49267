"""A plan: what a run takes on each GPU, whether it fits, and what remedies it where not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from skillc_lab.planning.memory import Part, Workload, memory_parts, total_of, update_operations, workload_of
from skillc_lab.planning.setups import GIB, Machine
from skillc_lab.planning.shapes import ModelShape, config_of, shape_of
from trainers.config import TrainConfig

__all__ = ["Plan", "Remedy", "make_plan"]


@dataclass(frozen=True)
class Remedy:
    """A change that lowers the memory.

    Attributes:
        words: The change as it is typed, several in one where one alone is not enough.
        total: Bytes per GPU with it.
        fits: Whether that fits.
        note: What it costs.
    """

    words: str
    total: float
    fits: bool
    note: str = ""


@dataclass(frozen=True)
class Plan:
    """What a run takes on each of a machine's GPUs.

    Attributes:
        config: The run's settings.
        machine: The machine.
        shape: The model.
        work: One GPU's share of an update.
        parts: Of one GPU's memory.
        remedies: What would lower it, each alone, then together where none is enough; none where the run fits.
        warnings: What else will not work.
    """

    config: TrainConfig
    machine: Machine
    shape: ModelShape
    work: Workload
    parts: Sequence[Part]
    remedies: Sequence[Remedy] = ()
    warnings: Sequence[str] = ()

    @property
    def update(self) -> float:
        """Bytes while weights are updated."""
        return total_of(self.parts, "update")

    @property
    def generation(self) -> float:
        """Bytes while episodes are played."""
        return total_of(self.parts, "generation")

    @property
    def total(self) -> float:
        """Bytes at the peak."""
        return max(self.update, self.generation)

    @property
    def fits(self) -> bool:
        """Whether a GPU holds it."""
        return self.total <= self.machine.usable

    @property
    def operations(self) -> float:
        """Floating-point operations of an update on each GPU, all rows as long as planned."""
        return update_operations(self.config, self.shape, self.work)

    @property
    def seconds(self) -> float | None:
        """Seconds of an update, playing apart; None where the machine's speed is not known."""
        speed = self.machine.tflops
        return None if speed is None else self.operations / (speed * 1e12)

    def to_json(self) -> dict[str, Any]:
        """All figures as JSON-able values, sizes in GiB."""
        machine = {name: getattr(self.machine, name) for name in ("gpus", "gpu_memory", "sharding")}
        sizes = {name: getattr(self, name) / GIB for name in ("update", "generation")}
        return {
            "model": self.config.model,
            "parameters": self.shape.parameters,
            **machine,
            "rows": self.work.rows,
            "row_tokens": self.work.row_tokens,
            "parts": {p.name: {"gib": p.size / GIB, "phase": p.phase, "note": p.note} for p in self.parts},
            **sizes,
            "usable": self.machine.usable / GIB,
            "operations": self.operations,
            "seconds": self.seconds,
            "fits": self.fits,
            "remedies": [{**vars(remedy), "total": remedy.total / GIB} for remedy in self.remedies],
            "warnings": list(self.warnings),
        }

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def _lines(plan: Plan) -> Iterator[str]:
    machine = plan.machine
    yield (
        f"{plan.config.model}: {plan.shape.parameters / 1e6:,.0f} M parameters on {machine.gpus} x "
        f"{machine.gpu_memory:g} GiB, sharding {machine.sharding}, engine {plan.config.engine}\n"
    )
    for part in plan.parts:
        when = "" if part.phase == "always" else f" ({part.phase})"
        yield f"  {part.name + when:<28}{part.size / GIB:8.2f} GiB   {part.note}"
    yield f"\n  {'in the update':<28}{plan.update / GIB:8.2f} GiB"
    yield f"  {'while episodes are played':<28}{plan.generation / GIB:8.2f} GiB"
    yield f"  {'a GPU has':<28}{machine.usable / GIB:8.2f} GiB   {machine.reserve:.0%} left to driver and fragmentation"
    yield f"  {'an update computes':<28}{plan.operations / 1e12:8,.0f} TFLOP a GPU at most, {_time(plan)}\n"
    yield "It fits." if plan.fits else "It does not fit. What lowers it:"
    for remedy in plan.remedies:
        verdict = "fits" if remedy.fits else "not enough"
        yield f"  {remedy.total / GIB:8.2f} GiB  {verdict:<11}{remedy.words}  ({remedy.note})"
    yield from (f"Warning: {warning}" for warning in plan.warnings)


def _time(plan: Plan) -> str:
    if plan.seconds is None:
        return "skillc gpu-check measures at what speed (--tflops)"
    hours = plan.seconds * plan.config.steps / 3600
    return f"{plan.seconds:,.1f} s; {hours:,.1f} h for {plan.config.steps} of them, playing and validations apart"


def make_plan(
    config: TrainConfig, machine: Machine, *, row_tokens: int | None = None, shape: ModelShape | None = None
) -> Plan:
    """Plans a run; no weights are loaded or fetched.

    Args:
        config: Its settings.
        machine: Where it shall run.
        row_tokens: Longest row that is expected; ``max_context``, the worst case, if None.
        shape: The model's shape, where it is known; counted on the meta device if None.

    Raises:
        MissingDataError: If nothing is known of the model.
        UnknownNameError: For a preset or environment that does not exist.
    """
    shape = shape or shape_of(config_of(config))
    plan = _plain(config, machine, shape, row_tokens)
    plan = replace(plan, warnings=tuple(_warnings(plan)))
    return plan if plan.fits else replace(plan, remedies=tuple(_remedies(plan, row_tokens)))


def _plain(config: TrainConfig, machine: Machine, shape: ModelShape, row_tokens: int | None) -> Plan:
    work = workload_of(config, shape, machine, row_tokens)
    return Plan(config, machine, shape, work, memory_parts(config, shape, machine, work))


def _warnings(plan: Plan) -> Iterator[str]:
    config, machine, shape = plan.config, plan.machine, plan.shape
    if config.tasks_per_step % machine.gpus:
        yield f"tasks_per_step={config.tasks_per_step} is no multiple of {machine.gpus} training processes."
    if machine.sharding == "zero3" and machine.shards > 1 and config.engine == "transformers":
        yield "Weights that DeepSpeed has sharded cannot generate in place; use engine=vllm."
    if config.engine == "vllm" and config.vllm_mode == "colocate":
        row = 2 * 2 * shape.layers * shape.keys * plan.work.row_tokens
        least, share = 2 * shape.parameters + row, config.vllm_memory * machine.gpu_memory * GIB
        if least > share:
            yield (
                f"vllm_memory={config.vllm_memory} is {share / GIB:.1f} GiB; vLLM's weights in bfloat16 and the keys "
                f"and values of one row take {least / GIB:.1f} GiB."
            )


def _remedies(plan: Plan, row_tokens: int | None) -> Iterator[Remedy]:
    """Each change alone, then as many as are needed, those first that do not change what is learned."""
    changes = list(_changes(plan))
    alone = [_remedied(plan, [change], row_tokens) for change in changes]
    yield from alone
    if any(remedy.fits for remedy in alone):
        return
    for count in range(2, len(changes) + 1):
        remedy = _remedied(plan, changes[:count], row_tokens)
        if remedy.fits or count == len(changes):
            yield remedy
            return


@dataclass(frozen=True)
class _Change:
    note: str
    settings: dict[str, Any]
    machine: dict[str, Any]

    @property
    def words(self) -> str:
        typed = [f"{name}={str(value).lower()}" for name, value in self.settings.items()]
        return " ".join([*typed, *(f"--{name} {value}" for name, value in self.machine.items())])


def _changes(plan: Plan) -> Iterator[_Change]:
    config, machine, work = plan.config, plan.machine, plan.work

    def setting(note: str, **settings: Any) -> _Change:
        return _Change(note, settings, {})

    if work.rows > 1:
        yield setting("one row per pass: more and smaller passes", micro_batches=config.micro_batches * work.rows)
    if not config.gradient_checkpointing:
        yield setting("a second forward pass", gradient_checkpointing=True)
    if machine.gpus > 1 and machine.shards == 1:
        yield _Change("weights are gathered layer by layer", {}, {"sharding": "fsdp2"})
    if config.engine == "vllm" and config.vllm_mode == "colocate" and not config.vllm_sleep:
        yield setting("vLLM gives its memory back during updates; waking it costs a copy", vllm_sleep=True)
    if config.optimiser == "adamw" and not config.lora_rank:
        yield setting("AdamW's moments in bytes; needs bitsandbytes", optimiser="adamw_8bit")
    if not config.lora_rank:
        yield setting("trains adapters alone", lora_rank=32)
    if config.precision != "pure_bfloat16":
        yield setting("loses updates at small learning rates, but for adapters", precision="pure_bfloat16")


def _remedied(plan: Plan, changes: Sequence[_Change], row_tokens: int | None) -> Remedy:
    config, machine = plan.config, plan.machine
    for change in changes:
        config, machine = config.with_(**change.settings), replace(machine, **change.machine)
    total = _plain(config, machine, plan.shape, row_tokens).total
    words = " ".join(change.words for change in changes)
    note = changes[0].note if len(changes) == 1 else "all of these together"
    return Remedy(words, total, total <= machine.usable, note)
