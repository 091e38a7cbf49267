"""One cell of a comparison: trained, evaluated, written down, and found again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from skillc_gym.episodes import iter_jsonl
from skillc_gym.errors import CheckpointError
from skillc_lab.studies.plan import Cell, ComparisonPlan
from skillc_lab.studies.result import CellResult, CurvePoint, TaskOutcome, Usage
from trainers.evaluation.paired_report import PairedReport
from trainers.tracking.run_folder import provenance, write_json

if TYPE_CHECKING:
    from trainers.training import RunResult

__all__ = ["cell_path", "held_out_fields", "play_held_out", "read_cell", "run_cell", "write_cell"]


def run_cell(plan: ComparisonPlan, cell: Cell) -> CellResult | None:
    """Trains and evaluates one cell, going on where it was interrupted; None if it is interrupted again.

    A run that is done keeps its metrics and its policy; checkpoints and transcripts are removed.
    """
    run = _trained(plan, cell) if cell.trained else None
    if run is not None and not run.finished:
        return None
    policy = run.policy if run else plan.models[cell.start]
    result = _result(cell, play_held_out(plan, cell, policy), run)
    write_cell(plan, cell, result)
    if run is not None:
        for folder in (run.folder.checkpoints_path, run.folder.transcripts_path):
            shutil.rmtree(folder, ignore_errors=True)
    return result


def play_held_out(plan: ComparisonPlan, cell: Cell, policy: str | Path) -> PairedReport:
    """Plays a plan's held-out tasks with a policy, with the skill and without."""
    from trainers.evaluation.policy import evaluate_policy

    return evaluate_policy(plan.evaluation(cell, policy), per_type=plan.per_type).paired


def held_out_fields(report: PairedReport) -> dict[str, Any]:
    """What a cell's result holds of its held-out tasks."""
    return {"panel_sha256": report.panel_sha256, "outcomes": tuple(map(_outcome, report.outcomes))}


def cell_path(plan: ComparisonPlan, cell: Cell) -> Path:
    """The file of a cell's result."""
    return plan.folder / "cells" / f"{cell.name}.json"


def write_cell(plan: ComparisonPlan, cell: Cell, result: CellResult) -> None:
    """Writes a cell's result beside the hash of the protocol that it is of."""
    write_json(cell_path(plan, cell), {"protocol": plan.digest(cell), **result.to_json()})


def read_cell(plan: ComparisonPlan, cell: Cell) -> CellResult | None:
    """The result of a cell that is done; None if it is not.

    Raises:
        CheckpointError: It was run under another protocol.
        TranscriptError: Another version wrote it.
    """
    path = cell_path(plan, cell)
    if not path.is_file():
        return None
    values = json.loads(path.read_text(encoding="utf-8"))
    if values.pop("protocol", None) != plan.digest(cell):
        raise CheckpointError(
            f"{path} was run under another protocol; name another folder, or delete it to run it again"
        )
    return CellResult.from_json(values)


def _trained(plan: ComparisonPlan, cell: Cell) -> RunResult:
    from trainers.training import run

    return run(plan.training(cell))


def _result(cell: Cell, report: PairedReport, run: RunResult | None) -> CellResult:
    metrics = run.metrics if run else []
    train = [record for record in metrics if record["event"] == "train"]
    return CellResult(
        start=cell.start,
        method=cell.method,
        seed=cell.seed,
        **held_out_fields(report),
        curve=_curve(metrics, run.folder.transcripts_path) if run else (),
        usage=_usage(train, metrics),
        skills=train[-1].get("memory", {}) if train else {},
        versions=provenance(),
    )


def _outcome(found: Any) -> TaskOutcome:
    with_, without = found.with_skill, found.without_skill
    return TaskOutcome(found.task_id, found.task_type, with_.won, without.won, with_.score, without.score)


def _usage(train: Sequence[Mapping[str, Any]], metrics: Sequence[Mapping[str, Any]]) -> Usage:
    if not train:
        return Usage()
    validation = sum(float(record.get("seconds_validation", 0.0)) for record in metrics)
    return Usage(
        tokens_generated=int(train[-1].get("tokens_total", 0)),
        prompt_tokens=sum(int(record.get("prompt_tokens", 0)) for record in train),
        env_steps=sum(int(record["env_steps"]) for record in train),
        updates=len(train),
        seconds_per_update=median(map(_seconds, train)),
        seconds=sum(map(_seconds, train)) + validation,
    )


def _seconds(record: Mapping[str, Any]) -> float:
    return sum(float(record.get(f"seconds_{part}", 0.0)) for part in ("generate", "prepare", "update"))


def _curve(metrics: Sequence[Mapping[str, Any]], transcripts: Path) -> tuple[CurvePoint, ...]:
    tokens, env_steps, points = 0, 0, []
    for record in metrics:
        if record["event"] == "train":
            tokens, env_steps = int(record["tokens_total"]), env_steps + int(record["env_steps"])
        elif record["event"] == "validation":
            points.append(
                CurvePoint(
                    tokens=tokens,
                    without=float(record["overall_without"]),
                    with_skill=float(record["overall_with"]),
                    update=int(record["step"]),
                    env_steps=env_steps,
                    **_won(transcripts / f"validation-{int(record['step']):06d}.jsonl"),
                )
            )
    return tuple(points)


def _won(transcript: Path) -> dict[str, str]:
    """Outcomes of a validation's episodes by condition, one character a task, in the order of the tasks' names."""
    won: dict[int, dict[str, bool]] = {0: {}, 1: {}}
    for episode in iter_jsonl(transcript):
        won[episode.condition][episode.task_id] = episode.won >= 1.0
    names = {0: "won_without", 1: "won_with"}
    return {names[arm]: "".join("01"[int(won[arm][task])] for task in sorted(won[arm])) for arm in names}
