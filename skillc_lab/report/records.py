"""What lies in a folder to report on: a run's metrics, evaluations, transcripts; each may be missing."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import inf
from pathlib import Path
from typing import Any

from skillc_gym.episodes import Episode, read_jsonl
from skillc_gym.errors import ConfigError, MissingDataError, SkillCError
from trainers.config import TrainConfig, current_settings
from trainers.evaluation import PairedReport, require_evaluation_of
from trainers.tracking import iter_records, read_object, same_env

_LARGEST = 1e15
_MAX_TYPES = 64
"""What a file may ask to be drawn at most."""


@dataclass(frozen=True)
class Series:
    """One figure over steps; both lists have the same length."""

    steps: list[int]
    values: list[float]

    @classmethod
    def of(cls, entries: Iterable[tuple[int, float | None]]) -> Series:
        """Steps with their values; those without one are left out."""
        found = [(step, value) for step, value in entries if value is not None]
        return cls([step for step, _ in found], [value for _, value in found])

    def part(self, first: float = -inf, last: float = inf) -> Series:
        """The steps between two, both included."""
        return Series.of((s, v) for s, v in zip(self.steps, self.values, strict=True) if first <= s <= last)


@dataclass(frozen=True)
class RunRecords:
    """The lines of ``metrics.jsonl``, apart by event and by step, and ``config.json``, empty if there is none."""

    train: Sequence[Mapping[str, Any]]
    validations: Sequence[Mapping[str, Any]]
    config: Mapping[str, Any]

    @classmethod
    def read(cls, folder: str | Path) -> RunRecords:
        """Reads a run folder, which must have metrics; lines that are no records (cut off by a kill) are left out."""
        path = Path(folder) / "metrics.jsonl"
        if not path.is_file():
            raise MissingDataError(f"{path} does not exist; a report needs the folder of a training run")
        records = [record for record in iter_records(path) if "event" in record]
        return cls.of(records, current_settings(object_or_empty(Path(folder) / "config.json")))

    @classmethod
    def of(cls, records: Sequence[Mapping[str, Any]], config: Mapping[str, Any]) -> RunRecords:
        """Sorts records by event and step."""
        by_event = {
            event: sorted((r for r in records if r["event"] == event), key=lambda r: int(r["step"]))
            for event in ("train", "validation")
        }
        return cls(by_event["train"], by_event["validation"], config)

    @cached_property
    def task_types(self) -> tuple[str, ...]:
        """All types in the run's fixed order."""
        for record in [*self.validations, *self.train]:
            for key in ("gap_smoothed", "gap"):
                found = record.get(key)
                if isinstance(found, Mapping) and found:
                    return tuple(found)[:_MAX_TYPES]
        return ()

    @property
    def last_step(self) -> int:
        """The last step that was measured."""
        return max((int(r["step"]) for r in [*self.train, *self.validations]), default=0)

    @property
    def total_steps(self) -> int:
        """Steps the run was meant to take."""
        return max(int(_number(self.config.get("steps")) or 0), self.last_step, 1)

    @property
    def capacity(self) -> tuple[int, ...]:
        """K(t) per stage, empty where no budget retires types."""
        found = self._retirement_rule.get("capacity")
        sizes = [_number(size) for size in found] if isinstance(found, list) else []
        known = tuple(int(size) for size in sizes[:_MAX_TYPES] if size is not None)
        return known if "budget" in self._retires_by else ()

    @property
    def threshold(self) -> float | None:
        """The smoothed gap below which a type retires, None where the gap retires nobody."""
        return _number(self._retirement_rule.get("threshold")) if "gap" in self._retires_by else None

    @property
    def retires(self) -> bool:
        """Whether the method withdraws the skill of a task type for good."""
        return bool(self._retires_by or self.retirements)

    @property
    def gated(self) -> bool:
        """Whether the gate decides who sees the skill; of a record that does not say so, whether anything retires."""
        return bool(self.validations[0].get("gated", self.retires)) if self.validations else False

    @property
    def _retirement_rule(self) -> Mapping[str, Any]:
        found = self.validations[0].get("retirement") if self.validations else None
        return found if isinstance(found, Mapping) else {}

    @property
    def _retires_by(self) -> Sequence[Any]:
        found = self._retirement_rule.get("by")
        return found if isinstance(found, list) else ()

    @cached_property
    def retirements(self) -> dict[str, tuple[int, str]]:
        """Step and reason of every retirement, also where a shrinking budget withdrew a skill between validations."""
        listed = [(record, record.get("retired")) for record in self.validations]
        told = {
            str(entry.get("type")): (int(record["step"]), str(entry.get("reason")))
            for record, entries in listed
            if isinstance(entries, list)
            for entry in entries
            if isinstance(entry, Mapping)
        }
        return {**told, **{kind: (step, "budget") for kind, step in self._withdrawn.items() if kind not in told}}

    @property
    def _withdrawn(self) -> dict[str, int]:
        """After how many updates a type that began with its skill was no longer among the active ones."""
        # An update is drawn before its step is done; a validation follows the update of its step.
        active: list[tuple[int, list[Any]]] = [
            (int(record["step"]) + late, record["active"])
            for late, part in ((-1, self.train), (0, self.validations))
            for record in part
            if isinstance(record.get("active"), list)
        ]
        active.sort(key=lambda entry: entry[0])
        without = {kind: [step for step, kinds in active if kind not in kinds] for kind in self.task_types}
        return {kind: steps[0] for kind, steps in without.items() if steps and kind in active[0][1]}

    def validated(self, key: str, task_type: str) -> Series:
        """A per-type figure over the validations."""
        return _series(self.validations, key, task_type)

    def trained(self, key: str, name: str) -> Series:
        """A part of a figure, such as a task type's, over the updates that measured it."""
        return _series(self.train, key, name)

    def overall(self, key: str, event: str = "train") -> Series:
        """A figure of the whole batch or panel; records without it are left out."""
        records = self.train if event == "train" else self.validations
        return Series.of((int(r["step"]), _number(r.get(key))) for r in records)

    def panel_size(self, task_type: str | None = None) -> int:
        """Tasks per validation, of one type or of all; 0 if it was not recorded."""
        found = self.validations[0].get("n") if self.validations else None
        sizes = {name: int(_number(n) or 0) for name, n in found.items()} if isinstance(found, Mapping) else {}
        return sizes.get(task_type, 0) if task_type else sum(sizes.values())


def object_or_empty(path: Path) -> dict[str, Any]:
    """A JSON object from a file; empty where there is none, or something else."""
    try:
        return read_object(path)
    except (OSError, ValueError):
        return {}


def _number(value: Any) -> float | None:
    """A number that can be drawn; None for anything else that a file may hold in its place."""
    drawable = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < _LARGEST
    return float(value) if drawable else None


def _series(records: Sequence[Mapping[str, Any]], key: str, task_type: str) -> Series:
    nested = [(int(r["step"]), r.get(key)) for r in records]
    return Series.of((step, _number(inner.get(task_type))) for step, inner in nested if isinstance(inner, Mapping))


def moving_mean(series: Series, window: int) -> Series:
    """Mean over the last ``window`` steps, not values: a condition may be missing from some updates."""
    places = [(bisect_right(series.steps, last - window), bisect_right(series.steps, last)) for last in series.steps]
    sums = [0.0, *accumulate(series.values)]
    return Series(series.steps, [(sums[end] - sums[start]) / (end - start) for start, end in places])


@dataclass(frozen=True)
class Evaluation:
    """What an evaluation left: its outcomes, None where there are only transcripts, and these, if they were kept."""

    report: PairedReport | None = None
    episodes: tuple[Episode, ...] = ()


@dataclass(frozen=True)
class Source:
    """What a folder holds: a run's metrics, if it has any, the evaluations before and after, and its JSON files.

    ``latest`` are the transcripts of the last step that a run kept any of, by title. In the folder of an evaluation,
    ``after`` is that evaluation.
    """

    run: RunRecords | None
    before: Evaluation
    after: Evaluation
    latest: Mapping[str, tuple[Episode, ...]]
    config: Mapping[str, Any]
    versions: Mapping[str, Any]


def read_source(folder: Path, *, before: str | Path | None = None, after: str | Path | None = None) -> Source:
    """Reads the folder of a run or of an evaluation; a MissingDataError where there is nothing to report on.

    Evaluations are those named, or ``before`` and ``after`` in it (``start`` and ``trained`` in a quick demonstration),
    or the folder itself.
    """
    run = RunRecords.read(folder) if (folder / "metrics.jsonl").is_file() else None
    begun = _first(folder, before, "before", "start")
    first = read_evaluation(begun, required=before is not None)
    place = _first(folder, after, "after", "trained")
    second = read_evaluation(place, required=after is not None)
    if run is not None:
        require_evaluation_of(folder / "policy", place)
    if after is None and second == Evaluation():
        second = read_evaluation(folder)
    latest = transcripts_of_step(folder) if any((folder / "transcripts").glob("*.jsonl")) else {}
    if run is None and not latest and Evaluation() == first == second:
        raise MissingDataError(
            f"{folder} holds nothing to report on: expected metrics.jsonl or transcripts/ of a training run, or "
            "report.json or transcripts.jsonl of an evaluation"
        )
    config = current_settings(object_or_empty(folder / "config.json"))
    if run is not None and first.report is not None:
        _require_start(config, begun)
    return Source(run, first, second, latest, config, object_or_empty(folder / "versions.json"))


def _require_start(config: Mapping[str, Any], begun: Path) -> None:
    """Refuses (ConfigError) an evaluation that is not of what a run with these settings began with."""
    trained = str(config.get("env", TrainConfig.env))
    played = str(object_or_empty(begun / "evaluation.json").get("env", trained))
    if not same_env(played, trained):
        raise ConfigError(f"{begun} was played in {played}, and the run in {trained}; name another --before.")
    try:  # by the environment's own name: that of somebody's code would import it
        start = TrainConfig(model=str(config.get("model", "")), env=trained.rpartition(":")[2]).model_path
    except SkillCError:  # the start need not be here any more
        return
    require_evaluation_of(Path(start), begun)


def _first(folder: Path, named: str | Path | None, *usual: str) -> Path:
    """The evaluation that is named, or the first of its usual places that is there."""
    if named is not None:
        return Path(named)
    there = [folder / name for name in usual if (folder / name / "report.json").is_file()]
    return there[0] if there else folder / usual[0]


def read_evaluation(folder: Path, *, required: bool = False) -> Evaluation:
    """Reads what an evaluation left in a folder; nothing of it need be there unless it is required."""
    report, transcripts = folder / "report.json", folder / "transcripts.jsonl"
    if required and not report.is_file():
        raise MissingDataError(f"{report} does not exist; evaluate the policy into {folder} first")
    return Evaluation(
        PairedReport.load(report) if report.is_file() else None,
        tuple(read_jsonl(transcripts)) if transcripts.is_file() else (),
    )


def in_order(report: PairedReport, order: Sequence[str]) -> list[str]:
    """A report's task types, those first that stand in the order."""
    return [*(kind for kind in order if kind in report.per_type), *(k for k in report.per_type if k not in order)]


def transcripts_of_step(folder: Path, step: int | None = None) -> dict[str, tuple[Episode, ...]]:
    """The transcripts that a run kept of a step, the last one by default, by title ("Validation at step 10").

    Raises:
        MissingDataError: The run kept no transcripts.
        ConfigError: It kept none of this step; the message names the steps.
    """
    kept: dict[int, list[Path]] = {}
    for path in sorted((folder / "transcripts").glob("*.jsonl")):
        if found := re.fullmatch(r"(?:train|validation)-(\d{1,12})", path.stem):
            kept.setdefault(int(found[1]), []).append(path)
    if not kept:
        raise MissingDataError(
            f"{folder / 'transcripts'} holds no transcripts of a run (train-*.jsonl, validation-*.jsonl)"
        )
    wanted = max(kept) if step is None else step
    if wanted not in kept:
        raise ConfigError(f"{folder} kept no transcripts of step {wanted}; there are some of {_listed(sorted(kept))}")
    names = {"train": "Training rollouts of step", "validation": "Validation at step"}
    return {f"{names[path.stem.split('-')[0]]} {wanted}": tuple(read_jsonl(path)) for path in reversed(kept[wanted])}


def _listed(steps: list[int]) -> str:
    shown = [str(step) for step in steps]
    return ", ".join(shown) if len(shown) <= 12 else f"{', '.join(shown[:5])}, ... {', '.join(shown[-5:])}"


@dataclass(frozen=True)
class ComparedRun:
    """One of several runs from one start, by its method: metrics, held-out tasks before and after, what parts did."""

    name: str
    run: RunRecords
    before: PairedReport | None
    after: PairedReport | None
    acted: Mapping[str, Any]

    @property
    def tokens(self) -> int:
        """Generated in training."""
        counted = self.run.overall("tokens_total").values
        return int(counted[-1]) if counted else 0


def read_run(folder: Path) -> ComparedRun:
    """Reads a run's folder, which must have metrics; evaluations may be missing."""
    run = RunRecords.read(folder)
    before, after = (read_evaluation(folder / when).report for when in ("before", "after"))
    acted = object_or_empty(folder / "what_acted.json")
    acted = {**acted, "withdraws": run.retires} if acted else {}
    return ComparedRun(str(run.config.get("method", folder.name)), run, before, after, acted)
