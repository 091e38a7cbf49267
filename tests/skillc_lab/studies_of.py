"""A small study: its run file, and what its cells came to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from skillc_lab.studies import CellResult, ComparisonPlan, CurvePoint, TaskOutcome, Usage, read_run_file

TEXT = "starts: {easy: shipped}\nmethods: [grpo, ppo]\nseeds: [0, 1]\nbudget_tokens: 100\nsteps: 4\nevaluate_every: 2\n"


def write_run_file(folder: Path) -> Path:
    """Writes it as ``own.yaml``."""
    path = folder / "own.yaml"
    path.write_text(TEXT)
    return path


def plan_of(folder: Path, text: str = TEXT, out: Path | None = None) -> ComparisonPlan:
    """The plan of a run file, which is written."""
    folder.mkdir(exist_ok=True)
    write_run_file(folder).write_text(text)
    return read_run_file(folder / "own.yaml", out or folder)


def cell_of(place: tuple[str, str, int], won: Sequence[bool], shown: Sequence[bool] = (), **fields: Any) -> CellResult:
    """A run of 100 tokens and 30 environment steps that ends with these tasks won; with the skill all, unless said."""
    pairs = list(zip(won, shown or [True] * len(won), strict=True))
    outcomes = tuple(TaskOutcome(f"t{i:03d}", "kind", w, z, float(w), float(z)) for i, (z, w) in enumerate(pairs))
    ends = ["".join("01"[solved] for solved in arm) for arm in zip(*pairs, strict=True)]
    rates = [end.count("1") / len(end) for end in ends]
    start = CurvePoint(0, 0.0, rates[1], 0, 0, "0" * len(pairs), ends[1])
    curve = (start, CurvePoint(100, *rates, 2, 30, *ends))
    return replace(CellResult(*place, "p", outcomes, curve, Usage(100, 50, 30, 2, 0.5, 1.0)), **fields)
