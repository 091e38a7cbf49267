"""A plan: what a run takes on each GPU, whether it fits, and what remedies it where not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from skillc_lab.planning.machine import GIB, Machine
from skillc_lab.planning.memory import Part, memory_parts, total_of
from skillc_lab.planning.operations import update_operations
from skillc_lab.planning.shapes import ModelShape, config_of, shape_of
from skillc_lab.planning.workload import Workload, workload_of
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
        warnings: What else will not work, in words.
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
    def operations(self) -> float:
        """Floating-point operations of an update on each GPU, all rows as long as planned."""
        return update_operations(self.config, self.shape, self.work)

    @property
    def seconds(self) -> float | None:
        """Seconds of an update, playing apart; None where the machine's speed is not known."""
        speed = self.machine.tflops
        return None if speed is None else self.operations / (speed * 1e12)

    @property
    def fits(self) -> bool:
        """Whether a GPU holds it."""
        return self.total <= self.machine.usable

    def to_json(self) -> dict[str, Any]:
        """All figures as JSON-able values, sizes in GiB."""
        return {
            "model": self.config.model,
            "parameters": self.shape.parameters,
            "gpus": self.machine.gpus,
            "gpu_memory": self.machine.gpu_memory,
            "sharding": self.machine.sharding,
            "rows": self.work.rows,
            "row_tokens": self.work.row_tokens,
            "parts": {
                part.name: {"gib": part.size / GIB, "phase": part.phase, "note": part.note} for part in self.parts
            },
            "update": self.update / GIB,
            "generation": self.generation / GIB,
            "usable": self.machine.usable / GIB,
            "operations": self.operations,
            "seconds": self.seconds,
            "fits": self.fits,
            "remedies": [
                {"words": m.words, "total": m.total / GIB, "fits": m.fits, "note": m.note} for m in self.remedies
            ],
            "warnings": list(self.warnings),
        }


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
    words: str
    note: str
    settings: dict[str, Any]
    machine: dict[str, Any]


def _changes(plan: Plan) -> Iterator[_Change]:
    config, machine, work = plan.config, plan.machine, plan.work

    def setting(note: str, **settings: Any) -> _Change:
        words = " ".join(f"{name}={str(value).lower()}" for name, value in settings.items())
        return _Change(words, note, settings, {})

    if work.rows > 1:
        yield setting("one row per pass: more and smaller passes", micro_batches=config.micro_batches * work.rows)
    if not config.gradient_checkpointing:
        yield setting("a second forward pass", gradient_checkpointing=True)
    if machine.gpus > 1 and machine.shards == 1:
        yield _Change("--sharding fsdp2", "weights are gathered layer by layer", {}, {"sharding": "fsdp2"})
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
        config = config.with_(**change.settings)
        machine = replace(machine, **change.machine)
    total = _plain(config, machine, plan.shape, row_tokens).total
    words = " ".join(change.words for change in changes)
    note = changes[0].note if len(changes) == 1 else "all of these together"
    return Remedy(words, total, total <= machine.usable, note)
