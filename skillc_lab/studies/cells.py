"""One cell of a comparison: trained, evaluated, written down and found again, or played otherwise with its policy."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from statistics import median
from typing import Any, Literal

from skill_library import load_library
from skillc_gym.episodes import iter_jsonl
from skillc_gym.errors import CheckpointError, ConfigError, MissingDataError
from skillc_lab.studies.declared import now
from skillc_lab.studies.plan import Cell, ComparisonPlan
from skillc_lab.studies.result import CellResult, CurvePoint, TaskOutcome, Usage
from trainers.evaluation import evaluate_policy
from trainers.tracking import RunFolder, continued_revision, make_folder, provenance, read_object, write_json
from trainers.training import run, what_acted

Memory = Literal["own", "library"]
_CHANGED = {
    "library_sha256": "the skill library has changed",
    "chat_sha256": "the wording of chat= has changed",
    "encoder_sha256": "its method's sentence encoder has changed",
    "bank_sha256": "its method's bank has changed",
    "start_sha256": "its starting point has changed",
    "end_sha256": "the settings that its end is played with have changed",
    "files_sha256": "a file that its settings name, or its start's tokenizer, has changed",
    "trained_sha256": "its policy was trained again",
}


def run_cell(plan: ComparisonPlan, cell: Cell) -> CellResult | None:
    """Trains and evaluates one cell, going on where it was interrupted; None if its time is up before it ends.

    A run that is done keeps its metrics and its policy; checkpoints and transcripts are removed. KeyboardInterrupt if
    it was asked to stop, so that whoever runs several stops too.
    """
    own = {"start": cell.start, "method": cell.method, "seed": cell.seed, **_begin(plan, cell)}
    if not cell.trained:
        result = CellResult(**own, **_held_out(plan, cell, plan.models[cell.start]))
        write_cell(plan, cell, result)
        return result
    trained = run(plan.training(cell))
    if trained.stopped or not (trained.finished or plan.training(cell).max_minutes):
        raise KeyboardInterrupt
    if not trained.finished:
        return None
    folder, updates = trained.folder, [record for record in trained.metrics if record["event"] == "train"]
    # Whether the method may take a task type's skill away.
    withdraws = any(each.get("retirement", {}).get("by") for each in trained.metrics if each["event"] == "validation")
    held_out = _held_out(plan, cell, trained.policy)
    begun, versions = read_written(folder.path / "versions.json").get("git"), held_out["versions"]
    held_out["versions"] = {**versions, "git": continued_revision(begun, versions["git"])}
    result = CellResult(
        **own,
        **held_out,
        curve=_curve(trained.metrics, folder.transcripts_path),
        usage=_usage(updates, trained.metrics),
        acted={**what_acted(trained.metrics), "withdraws": withdraws},
    )
    write_cell(plan, cell, result)
    for spent in (folder.checkpoints_path, folder.transcripts_path, folder.best_path):
        shutil.rmtree(spent, ignore_errors=True)
    return result


def _begin(plan: ComparisonPlan, cell: Cell) -> dict[str, Any]:
    """When a cell first began, and the study's file then; written down before it does."""
    path = plan.folder / "begun" / f"{cell.name}.json"
    if not path.is_file():
        make_folder(path.parent)
        write_json(path, {"started": now(), "run_file": asdict(plan.declared) if plan.declared else {}})
    return read_written(path)


def read_written(path: Path) -> dict[str, Any]:
    """What a study wrote into a file; a CheckpointError says what to delete where it is damaged."""
    try:
        return read_object(path)
    except ValueError as error:
        raise CheckpointError(f"{path} is damaged ({error}); delete it to run its cell again") from error


def begun_cells(plan: ComparisonPlan) -> list[tuple[str, str, Mapping[str, Any]]]:
    """The cells that have begun or are done: name, start, and run file, as far as they were written down."""
    found = []
    for cell in plan.jobs:
        begun, done = plan.folder / "begun" / f"{cell.name}.json", cell_path(plan, cell)
        if begun.is_file() or done.is_file():
            written = read_written(begun if begun.is_file() else done)
            found.append((cell.name, str(written.get("started", "")), written.get("run_file", {})))
    return found


def cell_path(plan: ComparisonPlan, cell: Cell) -> Path:
    """The file of a cell's result."""
    return plan.folder / "cells" / f"{cell.name}.json"


def write_cell(
    plan: ComparisonPlan, cell: Cell, result: CellResult, texts: Mapping[str, str | None] | None = None
) -> None:
    """Writes a cell's result with hashes of its protocol and of what that only names: of now, or those of a record."""
    texts = _texts(plan, cell) if texts is None else texts
    write_json(cell_path(plan, cell), {"protocol": plan.digest(cell), **texts, **result.to_json()})


def _texts(plan: ComparisonPlan, cell: Cell) -> dict[str, str | None]:
    """Hashes of what a protocol only names: its files, and what the end is played with; None where it is not here."""
    return {
        "library_sha256": plan.library_sha256(cell),
        "chat_sha256": plan.chat_sha256(cell),
        "encoder_sha256": plan.encoder_sha256(cell),
        "bank_sha256": plan.bank_sha256(cell),
        "start_sha256": plan.starts_sha256.get(cell.start),
        "end_sha256": plan.end_sha256(cell),
        "files_sha256": plan.files_sha256(cell),
        "trained_sha256": _trained_sha256(plan, cell),
    }


def _trained_sha256(plan: ComparisonPlan, cell: Cell) -> str | None:
    """Hash of the result of the training whose policy is played otherwise; None in a comparison itself."""
    trained = None if plan.of is None else read_cell(plan.of, cell)
    return None if trained is None else sha256(json.dumps(trained.to_json(), sort_keys=True).encode()).hexdigest()


def kept_texts(plan: ComparisonPlan, cell: Cell) -> dict[str, str]:
    """Those that a cell's file keeps; nothing where there is none."""
    path = cell_path(plan, cell)
    values = read_written(path) if path.is_file() else {}
    return {name: values[name] for name in _CHANGED if values.get(name) is not None}


def read_cell(plan: ComparisonPlan, cell: Cell) -> CellResult | None:
    """The result of a cell that is done; None if it is not.

    Raises:
        CheckpointError: It was run under another protocol, with other texts of the library, or from another start.
    """
    path = cell_path(plan, cell)
    if not path.is_file():
        return None
    values = read_written(path)
    # Earlier versions kept no such hashes.
    found = [(name, own, values.pop(name, None)) for name, own in _texts(plan, cell).items()]
    changed = [name for name, own, kept in found if None not in (own, kept) and own != kept]
    protocol = values.pop("protocol", None)
    same = protocol == plan.digest(cell) or protocol == plan.digest(cell, patience=True)
    if changed or not same:
        others = [plan.folder / "runs" / cell.name, plan.folder / "begun" / f"{cell.name}.json"]
        raise CheckpointError(
            f"{path} was run under another protocol{''.join(f' ({_CHANGED[name]})' for name in changed)}; name another "
            f"folder, or delete it, {others[0]} and {others[1]} to run it again"
        )
    return CellResult.from_json(values)


@dataclass(frozen=True)
class Changed:
    """What trained policies play otherwise: another held-out split or library; None for the comparison's."""

    split: str | None = None
    library: str | None = None

    def __bool__(self) -> bool:
        return self.split is not None or self.library is not None

    @property
    def name(self) -> str:
        """A file name for it: ``valid_seen``, ``alfworld.wrong`` or both; a ConfigError where they give none."""
        words = [word for word in (self.split, self.library) if word is not None]
        name = re.sub(r"[^A-Za-z0-9._-]", ".", "-".join(words)).lstrip(".")  # a dot in front would hide it
        if not name:  # "./" would be the folder above the comparison's
            raise ConfigError(f"--held-out and --library name the folder of a replay, and {words[0]!r} names none")
        return name

    def place(self, folder: Path, title: str) -> tuple[Path, str]:
        """Folder and title of the record, next to those of a comparison."""
        return folder / self.name, f"{title}_{self.name}"

    def plan(self, trained: ComparisonPlan) -> ComparisonPlan:
        """The plan of the same cells played so, in a folder and a record of its own; split and library must exist."""
        config = trained.config
        if self.library is not None:
            load_library(self.library)
            config = config.with_(library=self.library)
        folder, title = self.place(trained.folder, trained.title)
        split = self.split or trained.held_out
        # The run file declares what it says, not what its policies are made to play afterwards.
        return replace(
            trained, config=config, held_out=split, folder=folder, title=title, preregistered=False, of=trained
        )


def replay_cell(trained: ComparisonPlan, plan: ComparisonPlan, cell: Cell) -> CellResult | None:
    """Plays a cell of a changed plan with its policy of the ``trained`` one, and writes it; nothing is trained.

    None if it has not been trained to its end. What belongs to training, such as curve and cost, is the trained
    cell's. A policy that is not here, as in a folder that was restored from a record, is a MissingDataError.
    """
    done = read_cell(trained, cell)
    if done is None:
        return None
    # A method's own memory would otherwise be shown in the place of the library that was named.
    memory: Memory = "own" if plan.config.library == trained.config.library else "library"
    result = replace(done, **_held_out(plan, cell, _policy(trained, cell), memory))
    write_cell(plan, cell, result)
    return result


def _policy(trained: ComparisonPlan, cell: Cell) -> Path | str:
    if not cell.trained:
        return trained.models[cell.start]
    config = trained.training(cell)
    folder = RunFolder(Path(config.run))
    if not (folder.policy_path / "config.json").is_file():
        raise MissingDataError(f"There is no policy {folder.policy_path}; it lies where the cell was trained")
    # Cells may have been restored from a record, beside runs of other settings.
    if other := config.differences(read_written(folder.path / "config.json")):
        raise CheckpointError(f"{folder.path} was trained otherwise than its cell ({', '.join(other)})")
    return folder.policy_path


def _held_out(plan: ComparisonPlan, cell: Cell, policy: str | Path, memory: Memory = "own") -> dict[str, Any]:
    """Plays a plan's held-out tasks with a policy: what a cell's result holds of them, and what computed it."""
    config = plan.evaluation(cell, policy)
    report = evaluate_policy(config, per_type=plan.per_type, memory=memory).paired
    outcomes = [
        TaskOutcome(each.task_id, each.task_type, arm.won, other.won, arm.score, other.score)
        for each in report.outcomes
        for arm, other in [(each.with_skill, each.without_skill)]
    ]
    found = {"panel_sha256": report.panel_sha256, "outcomes": tuple(outcomes), "actions": report.actions()}
    return {**found, "versions": provenance()}


def _usage(train: Sequence[Mapping[str, Any]], metrics: Sequence[Mapping[str, Any]]) -> Usage:
    if not train:
        return Usage()
    parts = ("generate", "prepare", "update")
    seconds = [sum(float(record.get(f"seconds_{part}", 0.0)) for part in parts) for record in train]
    return Usage(
        tokens_generated=int(train[-1].get("tokens_total", 0)),
        prompt_tokens=sum(int(record.get("prompt_tokens", 0)) for record in train),
        env_steps=sum(int(record["env_steps"]) for record in train),
        updates=len(train),
        seconds_per_update=median(seconds),
        seconds=sum(seconds) + sum(float(record.get("seconds_validation", 0.0)) for record in metrics),
    )


def _curve(metrics: Sequence[Mapping[str, Any]], transcripts: Path) -> tuple[CurvePoint, ...]:
    tokens, env_steps, points = 0, 0, []
    for record in metrics:
        if record["event"] == "train":
            tokens, env_steps = int(record["tokens_total"]), env_steps + int(record["env_steps"])
        elif record["event"] == "validation":
            step = int(record["step"])
            without, with_skill = float(record["overall_without"]), float(record["overall_with"])
            won = _won(transcripts / f"validation-{step:06d}.jsonl")
            points.append(CurvePoint(tokens, without, with_skill, step, env_steps, *won))
    return tuple(points)


def _won(transcript: Path) -> tuple[str, str]:
    """Outcomes of a validation without the skill and with it, one character a task, in the order of tasks' names."""
    won: tuple[dict[str, bool], dict[str, bool]] = ({}, {})
    for episode in iter_jsonl(transcript):
        won[episode.condition][episode.task_id] = episode.won
    without, with_skill = ("".join("01"[int(arm[task])] for task in sorted(arm)) for arm in won)
    return without, with_skill
