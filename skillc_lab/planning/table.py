"""A plan in words."""

from __future__ import annotations

from collections.abc import Iterator

from skillc_lab.planning.machine import GIB
from skillc_lab.planning.plan import Plan

__all__ = ["as_text"]


def as_text(plan: Plan) -> str:
    """The plan's parts, its sums, and what remedies it."""
    return "\n".join(_lines(plan))


def _time(plan: Plan) -> str:
    if plan.seconds is None:
        return "skillc gpu-check measures at what speed (--tflops)"
    hours = plan.seconds * plan.config.steps / 3600
    return f"{plan.seconds:,.1f} s; {hours:,.1f} h for {plan.config.steps} of them, playing and validations apart"


def _lines(plan: Plan) -> Iterator[str]:
    machine = plan.machine
    yield (
        f"{plan.config.model}: {plan.shape.parameters / 1e6:,.0f} M parameters on {machine.gpus} x "
        f"{machine.gpu_memory:g} GiB, sharding {machine.sharding}, engine {plan.config.engine}"
    )
    yield ""
    for part in plan.parts:
        when = "" if part.phase == "always" else f" ({part.phase})"
        yield f"  {part.name + when:<28}{part.size / GIB:8.2f} GiB   {part.note}"
    yield ""
    yield f"  {'in the update':<28}{plan.update / GIB:8.2f} GiB"
    yield f"  {'while episodes are played':<28}{plan.generation / GIB:8.2f} GiB"
    yield f"  {'a GPU has':<28}{machine.usable / GIB:8.2f} GiB   {machine.reserve:.0%} left to driver and fragmentation"
    yield f"  {'an update computes':<28}{plan.operations / 1e12:8,.0f} TFLOP a GPU at most, {_time(plan)}"
    yield ""
    yield "It fits." if plan.fits else "It does not fit. What lowers it:"
    for remedy in plan.remedies:
        verdict = "fits" if remedy.fits else "not enough"
        yield f"  {remedy.total / GIB:8.2f} GiB  {verdict:<11}{remedy.words}  ({remedy.note})"
    yield from (f"Warning: {warning}" for warning in plan.warnings)
