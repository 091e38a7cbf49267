"""Running a comparison: cell by cell, on all cores, to be gone on with after an interruption."""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from statistics import median
from typing import Any

from skillc_gym.errors import CheckpointError
from skillc_gym.panels import panel_hash
from trainers.comparison.picture import draw_comparison
from trainers.comparison.plan import Cell, ComparisonPlan
from trainers.comparison.result import CellResult, CurvePoint, TaskOutcome
from trainers.comparison.table import method_rows, table_text
from trainers.evaluation.paired_report import PairedReport
from trainers.tracking.run_folder import make_folder, provenance, write_json

__all__ = ["compare", "run_cell"]

_THREADS = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}


def compare(
    plan: ComparisonPlan, *, workers: int = 1, note: Callable[[str], object] = lambda text: None
) -> list[CellResult]:
    """Runs what is not there yet of a comparison, and writes its files anew after every cell.

    ``comparison.json`` holds the protocol and the outcome of every task, ``table.md`` the table and
    ``comparison.png`` the picture. Calling it again goes on; cells of another protocol are refused.

    Args:
        plan: What is compared.
        workers: Processes; each uses one thread.
        note: Told of every cell that is done.

    Returns:
        The cells in the plan's order; those that were interrupted are missing.

    Raises:
        CheckpointError: The folder holds cells of another protocol.
    """
    make_folder(plan.folder / "cells")
    done = {cell: found for cell in plan.cells if (found := _read(plan, cell))}
    missing = [cell for cell in plan.cells if cell not in done]
    for cell, result in _results(plan, missing, workers):
        done[cell] = result
        note(f"{cell.name}: {100 * result.without:.0f} % without the skill after {result.updates} updates")
        write_comparison(plan, [done[each] for each in plan.cells if each in done])
    ordered = [done[cell] for cell in plan.cells if cell in done]
    write_comparison(plan, ordered)
    return ordered


def run_cell(plan: ComparisonPlan, cell: Cell) -> CellResult | None:
    """Trains and evaluates one cell, going on where it was interrupted; None if it is interrupted again."""
    from trainers.evaluation.policy import evaluate_policy
    from trainers.training import run

    run_folder = run(plan.training(cell))
    if not run_folder.finished:
        return None
    report = evaluate_policy(plan.evaluation(cell, run_folder.policy), per_type=plan.per_type).paired
    result = _result(cell, run_folder.metrics, report)
    write_json(_path(plan, cell), {"protocol": plan.digest, **result.to_json()})
    return result


def write_comparison(plan: ComparisonPlan, cells: Sequence[CellResult]) -> None:
    """Writes record, table and picture of the cells that are there."""
    baseline, budget = plan.methods[0], plan.config.budget_tokens
    if budget is None or baseline not in {cell.method for cell in cells}:
        return
    shared = _with_baseline(cells, baseline)
    rows = method_rows(shared, baseline, budget)
    record = {
        "protocol": plan.protocol,
        "versions": provenance(),
        "rows": [row.to_json() for row in rows],
        "cells": [cell.to_json() for cell in cells],
    }
    write_json(plan.folder / "comparison.json", record)
    (plan.folder / "table.md").write_text(table_text(rows) + "\n", encoding="utf-8")
    draw_comparison(rows, shared, budget, plan.folder / "comparison.png")


def _with_baseline(cells: Sequence[CellResult], baseline: str) -> list[CellResult]:
    """Cells of the seeds that the baseline has, so that every row can be compared with it."""
    seeds = {cell.seed for cell in cells if cell.method == baseline}
    return [cell for cell in cells if cell.seed in seeds]


def _results(plan: ComparisonPlan, cells: Sequence[Cell], workers: int) -> Any:
    """Pairs of a cell and its result, as they come."""
    if workers <= 1:
        found = ((cell, run_cell(plan, cell)) for cell in cells)
        yield from ((cell, result) for cell, result in found if result is not None)
        return
    os.environ.update({name: os.environ.get(name, value) for name, value in _THREADS.items()})
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        tasks = {pool.submit(run_cell, plan, cell): cell for cell in cells}
        for task in as_completed(tasks):
            result = task.result()
            if result is not None:
                yield tasks[task], result


def _result(cell: Cell, metrics: Sequence[Mapping[str, Any]], report: PairedReport) -> CellResult:
    train = [record for record in metrics if record["event"] == "train"]
    last = train[-1] if train else {}
    return CellResult(
        method=cell.method,
        seed=cell.seed,
        panel_sha256=panel_hash([outcome.task_id for outcome in report.outcomes]),
        outcomes=tuple(
            TaskOutcome(
                each.task_id,
                each.task_type,
                each.with_skill.won,
                each.without_skill.won,
                each.with_skill.score,
                each.without_skill.score,
            )
            for each in report.outcomes
        ),
        curve=_curve(metrics),
        tokens_generated=int(last.get("tokens_total", 0)),
        prompt_tokens=sum(int(record.get("prompt_tokens", 0)) for record in train),
        env_steps=sum(int(record["env_steps"]) for record in train),
        updates=len(train),
        seconds_per_update=median(_seconds(record) for record in train) if train else 0.0,
        skills=last.get("memory", {}),
    )


def _curve(metrics: Sequence[Mapping[str, Any]]) -> tuple[CurvePoint, ...]:
    tokens, points = 0, []
    for record in metrics:
        if record["event"] == "train":
            tokens = int(record["tokens_total"])
        elif record["event"] == "validation":
            points.append(CurvePoint(tokens, float(record["overall_without"]), float(record["overall_with"])))
    return tuple(points)


def _seconds(record: Mapping[str, Any]) -> float:
    return sum(float(record.get(f"seconds_{part}", 0.0)) for part in ("generate", "prepare", "update"))


def _path(plan: ComparisonPlan, cell: Cell) -> Path:
    return plan.folder / "cells" / f"{cell.name}.json"


def _read(plan: ComparisonPlan, cell: Cell) -> CellResult | None:
    path = _path(plan, cell)
    if not path.is_file():
        return None
    values = json.loads(path.read_text(encoding="utf-8"))
    if values.pop("protocol", None) != plan.digest:
        raise CheckpointError(f"{path} was run under another protocol; compare into another folder, or repeat it all")
    return CellResult.from_json(values)
