"""Records of small made-up studies."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from skillc_lab.studies import UNTRAINED, CellResult, write_comparison
from tests.skillc_lab.studies_of import cell_of, plan_of

__all__ = ["METHODS", "cell", "won", "written"]

METHODS = {"grpo": 2, "skillc": 1, "contrastive_relabelling": 14}
"""Of twenty tasks, how many each solves without the skill."""


def won(wins: int, seed: int) -> list[bool]:
    """Which of twenty tasks are solved."""
    return [(7 * i + seed * (i % 3)) % 20 < wins for i in range(20)]


def cell(method: str, seed: int, tasks: Sequence[bool] | None = None) -> CellResult:
    """A run from the hard start, after which three of four tasks are solved with the skill."""
    found = won(METHODS.get(method, 1), seed) if tasks is None else tasks
    return cell_of(("hard", method, seed), found, [i % 4 > 0 for i in range(len(found))])


def written(folder: Path, cells: Sequence[CellResult] | None = None, methods: Sequence[str] = tuple(METHODS)) -> Path:
    """Writes a record of a study: every method over three seeds and the starting point, or the cells given."""
    head = "starts: {hard: shipped-hard}\nbudget_tokens: 100\nsteps: 4\nevaluate_every: 2\nmethods:\n"
    plan = plan_of(folder, head + "".join(f"  - {method}\n" for method in methods))
    own = [cell(UNTRAINED, 0), *(cell(method, seed) for seed in range(3) for method in methods)]
    write_comparison(plan, own if cells is None else cells)
    return folder / "own.json"
