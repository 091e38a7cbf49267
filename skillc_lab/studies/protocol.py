"""Whether a cell of a record was run under a plan's protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skillc_lab.studies.plan import Cell
from trainers.config import TrainConfig

__all__ = ["protocol_differences"]

_NOTHING = "nothing"


def protocol_differences(was: Mapping[str, Any], now: Mapping[str, Any], cell: Cell) -> str:
    """What decides a cell's figures, beside code and seed, and differs between two protocols.

    A setting that a record does not have came later, and stood at what is its default now.

    Args:
        was: A record's protocol.
        now: A plan's.
        cell: The cell.

    Returns:
        ``name was X and is Y``, with commas between; empty where nothing differs.
    """
    before = {**TrainConfig(model="").to_json(), **_decisive(was, cell)}
    after = _decisive(now, cell)
    names = [*after, *(name for name in _decisive(was, cell) if name not in after)]
    values = [(name, before.get(name, _NOTHING), after.get(name, _NOTHING)) for name in names]
    return ", ".join(f"{name} was {then} and is {here}" for name, then, here in values if then != here)


def _decisive(protocol: Mapping[str, Any], cell: Cell) -> dict[str, Any]:
    return {
        **protocol["settings"],
        "start": protocol["starts"].get(cell.start),
        "held_out": protocol["held_out"],
        "per_type": protocol["per_type"],
        "overrides": protocol["overrides"].get(cell.method, {}),
    }
