"""What is compared, and under which protocol."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillc_gym.errors import ConfigError
from trainers.config import TrainConfig
from trainers.recipes import get_recipe

__all__ = ["Cell", "ComparisonPlan", "read_method"]

_PER_CELL = ("run", "preset", "preset_options", "seed", "resume")
"""Settings that belong to a cell, not to the protocol."""


def read_method(label: str) -> tuple[str, dict[str, Any]]:
    """Reads ``skillc`` or ``skillc:omega=0.2,lam=0``: a recipe and changes to its options, values as JSON.

    Raises:
        UnknownNameError: No such recipe or option.
        ConfigError: A change that is not written ``option=value``, or a value out of range.
    """
    name, _, changes = label.partition(":")
    options: dict[str, Any] = {}
    for change in filter(None, changes.split(",")):
        option, equals, value = change.partition("=")
        if not equals:
            raise ConfigError(f"A method's options are written name:option=value,option=value; got {label!r}")
        try:
            options[option] = json.loads(value)
        except json.JSONDecodeError:
            options[option] = value
    get_recipe(name, **options)
    return name, options


@dataclass(frozen=True)
class Cell:
    """One method with one seed."""

    method: str
    seed: int

    @property
    def name(self) -> str:
        """A file name for it."""
        return f"{re.sub(r'[^A-Za-z0-9.+=_-]', '_', self.method)}-seed{self.seed}"


@dataclass(frozen=True)
class ComparisonPlan:
    """A table's methods and the protocol that they share.

    Attributes:
        config: Settings of every run; what belongs to a cell is replaced.
        methods: As :func:`read_method` takes them; the first is the baseline.
        seeds: Training seeds.
        folder: Where everything is written.
        held_out: Split of the tasks that are played after training.
        per_type: So many of them per type; all if None.
    """

    config: TrainConfig
    methods: tuple[str, ...]
    seeds: tuple[int, ...]
    folder: Path
    held_out: str
    per_type: int | None

    def __post_init__(self) -> None:
        if not self.methods or len(set(self.methods)) < len(self.methods):
            raise ConfigError(f"A comparison needs methods, each once; got {', '.join(self.methods) or 'none'}")
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            raise ConfigError(f"A comparison needs seeds, each once; got {list(self.seeds)}")
        if self.config.budget_tokens is None:
            raise ConfigError("A comparison needs a budget of generated tokens per run, such as --budget-tokens 500000")
        for label in self.methods:
            read_method(label)

    @property
    def cells(self) -> tuple[Cell, ...]:
        """All cells, seed by seed, so that a half-finished table has whole columns."""
        return tuple(Cell(method, seed) for seed in self.seeds for method in self.methods)

    @property
    def protocol(self) -> dict[str, Any]:
        """What every cell shares, as JSON-able values; cells of another protocol do not belong into the table."""
        settings = {name: value for name, value in self.config.to_json().items() if name not in _PER_CELL}
        return {"settings": settings, "held_out": self.held_out, "per_type": self.per_type}

    @property
    def digest(self) -> str:
        """Hash of the protocol."""
        return hashlib.sha256(json.dumps(self.protocol, sort_keys=True).encode()).hexdigest()

    def training(self, cell: Cell) -> TrainConfig:
        """The settings of a cell's run."""
        preset, options = read_method(cell.method)
        changes: Mapping[str, Any] = {
            "preset": preset,
            "preset_options": {**self.config.preset_options, **options},
            "seed": cell.seed,
            "run": str(self.folder / "runs" / cell.name),
            "resume": "auto",
        }
        return self.config.with_(**changes)

    def evaluation(self, cell: Cell, policy: Path) -> TrainConfig:
        """The settings of a cell's evaluation: the same tasks and draws for every cell."""
        return self.training(cell).with_(model=str(policy), split=self.held_out, seed=self.config.seed)
