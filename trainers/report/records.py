"""A run's metrics, read for drawing: what was measured at which step."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from skillc_gym.curricula.options import scale_capacity
from skillc_gym.errors import MissingDataError, UnknownNameError
from trainers.config import method_options
from trainers.recipes import Preset, get_preset

__all__ = ["RunRecords", "Series", "moving_mean"]


@dataclass(frozen=True)
class Series:
    """One figure over steps; both lists have the same length."""

    steps: list[int]
    values: list[float]


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
        """Reads a run folder; a last line cut off by an interruption is left out.

        Raises:
            MissingDataError: There is no ``metrics.jsonl``.
        """
        path = Path(folder) / "metrics.jsonl"
        if not path.is_file():
            raise MissingDataError(f"{path} does not exist; a report needs the folder of a training run")
        records = []
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                records.append(json.loads(line))
            except json.JSONDecodeError:
                break
        config_path = Path(folder) / "config.json"
        config = json.loads(config_path.read_text(encoding="utf-8")) if config_path.is_file() else {}
        return cls.of(records, config)

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
                if record.get(key):
                    return tuple(record[key])
        return ()

    @property
    def last_step(self) -> int:
        """The last step that was measured."""
        return max((int(r["step"]) for r in [*self.train, *self.validations]), default=0)

    @property
    def total_steps(self) -> int:
        """Steps the run was meant to take."""
        return max(int(self.config.get("steps", 0)), self.last_step, 1)

    @cached_property
    def preset(self) -> Preset | None:
        """The run's method, None if its configuration does not say."""
        try:
            options = method_options(str(self.config.get("env", "")), self.config.get("preset_options", {}))
            return get_preset(self.config["preset"], **options)
        except (KeyError, UnknownNameError):
            return None

    @property
    def capacity(self) -> tuple[int, ...]:
        """K(t) per stage, empty where no budget retires types."""
        if self.preset is None or "budget" not in self.preset.retire_by or not self.task_types:
            return ()
        return scale_capacity(self.preset.capacity, len(self.task_types))

    @cached_property
    def retirements(self) -> dict[str, tuple[int, str]]:
        """Step and reason of every retirement."""
        return {
            entry["type"]: (int(record["step"]), str(entry["reason"]))
            for record in self.validations
            for entry in record.get("retired", ())
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
        found = [(int(r["step"]), float(r[key])) for r in records if r.get(key) is not None]
        return Series([step for step, _ in found], [value for _, value in found])

    def panel_size(self, task_type: str | None = None) -> int:
        """Tasks per validation, of one type or of all; 0 if it was not recorded."""
        sizes = self.validations[0].get("n", {}) if self.validations else {}
        return int(sizes.get(task_type, 0)) if task_type else sum(int(n) for n in sizes.values())


def _series(records: Sequence[Mapping[str, Any]], key: str, task_type: str) -> Series:
    found = [
        (int(r["step"]), float(r[key][task_type]))
        for r in records
        if key in r and r[key] and r[key].get(task_type) is not None
    ]
    return Series([step for step, _ in found], [value for _, value in found])


def moving_mean(series: Series, window: int) -> Series:
    """Mean over the last ``window`` steps, not values: a condition may be missing from some updates."""
    values = [
        [v for s, v in zip(series.steps, series.values, strict=True) if last - window < s <= last]
        for last in series.steps
    ]
    return Series(series.steps, [sum(v) / len(v) for v in values])
