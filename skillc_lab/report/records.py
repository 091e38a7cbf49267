"""A run's metrics, read for drawing: what was measured at which step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from skillc_gym.errors import MissingDataError
from trainers.config import current_settings
from trainers.tracking import iter_records
from trainers.tracking import read_object as read_bounded_object

__all__ = ["RunRecords", "Series", "moving_mean", "read_object"]


_LARGEST = 1e15
_MAX_TYPES = 64
"""What a file may ask to be drawn at most."""


@dataclass(frozen=True)
class Series:
    """One figure over steps; both lists have the same length."""

    steps: list[int]
    values: list[float]

    def where(self, keep: Sequence[bool]) -> Series:
        """The entries that are marked."""
        entries = [(s, v) for s, v, k in zip(self.steps, self.values, keep, strict=True) if k]
        return Series([step for step, _ in entries], [value for _, value in entries])


@dataclass(frozen=True)
class RunRecords:
    """The lines of ``metrics.jsonl``, apart by event, and the run's configuration.

    Attributes:
        train: One record per update, by step.
        validations: One record per validation, by step.
        config: The run's ``config.json``, empty if there is none.
    """

    train: Sequence[Mapping[str, Any]]
    validations: Sequence[Mapping[str, Any]]
    config: Mapping[str, Any]

    @classmethod
    def read(cls, folder: str | Path) -> RunRecords:
        """Reads a run folder; lines of the metrics that are no records (cut off by a kill) are left out.

        Raises:
            MissingDataError: There is no ``metrics.jsonl``.
        """
        path = Path(folder) / "metrics.jsonl"
        if not path.is_file():
            raise MissingDataError(f"{path} does not exist; a report needs the folder of a training run")
        records = [record for _, record in iter_records(path) if record is not None and "event" in record]
        return cls.of(records, current_settings(read_object(Path(folder) / "config.json")))

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
    def _retirement_rule(self) -> Mapping[str, Any]:
        found = self.validations[0].get("retirement") if self.validations else None
        return found if isinstance(found, Mapping) else {}

    @property
    def _retires_by(self) -> Sequence[Any]:
        found = self._retirement_rule.get("by")
        return found if isinstance(found, list) else ()

    @cached_property
    def retirements(self) -> dict[str, tuple[int, str]]:
        """Step and reason of every retirement."""
        listed = [(record, record.get("retired")) for record in self.validations]
        return {
            str(entry.get("type")): (int(record["step"]), str(entry.get("reason")))
            for record, entries in listed
            if isinstance(entries, list)
            for entry in entries
            if isinstance(entry, Mapping)
        }

    def validated(self, key: str, task_type: str) -> Series:
        """A per-type figure over the validations."""
        return _series(self.validations, key, task_type)

    def trained(self, key: str, task_type: str) -> Series:
        """A per-type figure over the updates that measured it."""
        return _series(self.train, key, task_type)

    def nested(self, key: str, name: str) -> Series:
        """A named part of a figure over the updates that measured it."""
        return _series(self.train, key, name)

    def overall(self, key: str, event: str = "train") -> Series:
        """A figure of the whole batch or panel; records without it are left out."""
        records = self.train if event == "train" else self.validations
        found = [(int(r["step"]), value) for r in records if (value := _number(r.get(key))) is not None]
        return Series([step for step, _ in found], [value for _, value in found])

    def panel_size(self, task_type: str | None = None) -> int:
        """Tasks per validation, of one type or of all; 0 if it was not recorded."""
        found = self.validations[0].get("n") if self.validations else None
        sizes = {name: int(_number(n) or 0) for name, n in found.items()} if isinstance(found, Mapping) else {}
        return sizes.get(task_type, 0) if task_type else sum(sizes.values())


def read_object(path: Path) -> dict[str, Any]:
    """A JSON object from a file; empty where there is none, or something else."""
    try:
        return read_bounded_object(path)
    except (OSError, ValueError):
        return {}


def _number(value: Any) -> float | None:
    """A number that can be drawn; None for anything else that a file may hold in its place."""
    drawable = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < _LARGEST
    return float(value) if drawable else None


def _series(records: Sequence[Mapping[str, Any]], key: str, task_type: str) -> Series:
    nested = [(int(r["step"]), r.get(key)) for r in records]
    numbers = [(step, _number(inner.get(task_type))) for step, inner in nested if isinstance(inner, Mapping)]
    found = [(step, value) for step, value in numbers if value is not None]
    return Series([step for step, _ in found], [value for _, value in found])


def moving_mean(series: Series, window: int) -> Series:
    """Mean over the last ``window`` steps, not values: a condition may be missing from some updates."""
    values = [
        [v for s, v in zip(series.steps, series.values, strict=True) if last - window < s <= last]
        for last in series.steps
    ]
    return Series(series.steps, [sum(v) / len(v) for v in values])
