"""Records of small made-up studies."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from skillc_lab.studies import UNTRAINED, CellResult, CurvePoint, TaskOutcome, Usage, read_run_file, write_comparison

__all__ = ["METHODS", "cell", "outcomes", "written"]

METHODS = {"grpo": 2, "skillc": 1, "contrastive_relabelling": 14}
"""Of twenty tasks, how many each solves without the skill."""


def outcomes(wins: int, seed: int, kind: str = "pick_heat_then_place_in_recep") -> tuple[TaskOutcome, ...]:
    """Twenty tasks of a type: fifteen are solved with the skill, so many without."""
    won = [(7 * i + seed * (i % 3)) % 20 < wins for i in range(20)]
    return tuple(TaskOutcome(f"{kind}{i:02d}", kind, i % 4 > 0, w, 1.0, float(w)) for i, w in enumerate(won))


def cell(method: str, seed: int, tasks: tuple[TaskOutcome, ...] | None = None) -> CellResult:
    """A run from the hard start."""
    found = outcomes(METHODS.get(method, 1), seed) if tasks is None else tasks
    curve = (CurvePoint(0, 0.0, 1.0), CurvePoint(100, sum(each.won_without for each in found) / len(found), 1.0, 2, 30))
    return CellResult("hard", method, seed, "p", found, curve, Usage(100, 50, 30, 2, 0.5, 1.0))


def written(folder: Path, cells: Sequence[CellResult] | None = None, methods: Sequence[str] = tuple(METHODS)) -> Path:
    """Writes a record of a study: every method over three seeds and the starting point, or the cells given."""
    head = "starts: {hard: shipped-hard}\nbudget_tokens: 100\nsteps: 4\nevaluate_every: 2\nmethods:\n"
    (folder / "own.yaml").write_text(head + "".join(f"  - {method}\n" for method in methods))
    plan = read_run_file(folder / "own.yaml", folder)
    own = [cell(UNTRAINED, 0), *(cell(method, seed) for seed in range(3) for method in methods)]
    write_comparison(plan, own if cells is None else cells)
    return folder / "own.json"
