"""Small studies: run files, what their cells came to, and records."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from skillc_lab import studies
from skillc_lab.studies import UNTRAINED, CellResult, ComparisonPlan, CurvePoint, TaskOutcome, Usage

TEXT = "starts: {easy: shipped}\nmethods: [grpo, ppo]\nseeds: [0, 1]\nbudget_tokens: 100\nsteps: 4\nevaluate_every: 2\n"
METHODS = {"grpo": 2, "skillc": 1, "contrastive_relabelling": 14}
"""Of twenty tasks, how many each solves without the skill."""


def write_run_file(folder: Path) -> Path:
    """Writes it as ``own.yaml``."""
    path = folder / "own.yaml"
    path.write_text(TEXT)
    return path


def plan_of(folder: Path, text: str = TEXT, out: Path | None = None) -> ComparisonPlan:
    """The plan of a run file, which is written."""
    folder.mkdir(exist_ok=True)
    write_run_file(folder).write_text(text)
    return studies.read_run_file(folder / "own.yaml", out or folder)


def cell_of(place: tuple[str, str, int], won: Sequence[bool], shown: Sequence[bool] = (), **fields: Any) -> CellResult:
    """A run of 100 tokens and 30 environment steps that ends with these tasks won; with the skill all, unless said."""
    pairs = list(zip(won, shown or [True] * len(won), strict=True))
    outcomes = tuple(TaskOutcome(f"t{i:03d}", "kind", w, z, float(w), float(z)) for i, (z, w) in enumerate(pairs))
    ends = ["".join("01"[solved] for solved in arm) for arm in zip(*pairs, strict=True)]
    rates = [end.count("1") / len(end) for end in ends]
    start = CurvePoint(0, 0.0, rates[1], 0, 0, "0" * len(pairs), ends[1])
    curve = (start, CurvePoint(100, *rates, 2, 30, *ends))
    return replace(CellResult(*place, "p", outcomes, curve, Usage(100, 50, 30, 2, 0.5, 1.0)), **fields)


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
    studies.write_comparison(plan, own if cells is None else cells)
    return folder / "own.json"
