"""What a method's own parts did in runs, in words: columns beside its score, where it has such parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any


def _mean(form: str, factor: float = 1.0) -> Callable[[Sequence[float]], str]:
    return lambda values: f"{factor * fmean(values):{form}}"


def _updates(values: Sequence[int]) -> str:
    return ", ".join(map(str, values))


ACTED: Mapping[str, tuple[str, Callable[[Sequence[Any]], str]]] = {
    "bank_uses": ("bank uses", _mean(",.0f")),
    "entries_added": ("entries added", _mean(",.0f")),
    "teacher_part": ("teacher's part", _mean(".3g")),
    "relabelled_updates": ("updates with a relabelled row, %", _mean(".0f", 100)),
    "withdrawn_at": ("skill withdrawn at update", _updates),
}
"""Heads, and how the figures of several seeds are shown, by the names of :func:`trainers.training.what_acted`; a run
that also says ``withdraws`` is of a method that may take the skill away."""


def acted_cell(name: str, runs: Iterable[Mapping[str, Any]]) -> str:
    """A figure over a method's runs; "" where it has no such part, or the runs do not say."""
    known = [run for run in runs if run]
    values = [run[name] for run in known if isinstance(run.get(name), int | float)]
    if name == "withdrawn_at" and any(run.get("withdraws") or run.get("withdrawn_types") for run in known):
        return ", ".join(str(run.get(name) or "never") for run in known)
    return ACTED[name][1](values) if values else ""


def acted_heads(runs: Iterable[Mapping[str, Any]]) -> list[str]:
    """The figures that any of the runs has."""
    known = list(runs)
    return [name for name in ACTED if acted_cell(name, known)]
