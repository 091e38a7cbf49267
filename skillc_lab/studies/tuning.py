"""Tuning: every method gets the same settings to choose from, and one rule says which of them is its best."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from skillc_gym.errors import ConfigError
from skillc_lab.studies.plan import ComparisonPlan, typed
from skillc_lab.studies.result import CellResult, area_under_curve
from skillc_lab.studies.run import compare
from skillc_lab.tables import Row, Table
from trainers.config import TrainConfig


@dataclass(frozen=True)
class TunedSetting:
    """What a setting of a method came to over its seeds: success at the end, and averaged over training (``area``)."""

    label: str
    method: str
    seeds: int
    without: float
    area: float
    with_skill: float

    @property
    def score(self) -> float:
        """What settings are ranked by: half the end, half the way there."""
        return (self.without + self.area) / 2


def cross(methods: Sequence[str], grid: Mapping[str, Sequence[Any]]) -> dict[str, dict[str, Any]]:
    """All combinations of a grid for every method: overrides of a plan, by label.

    Methods may have additions; options belong into the grid, as ``method.tau_retire``.

    Raises:
        ConfigError: Nothing to combine, or a setting without values.
    """
    if not methods or not grid or not all(grid.values()):
        raise ConfigError(
            "A grid needs methods and values for each setting, such as grid.learning_rate=0.0003,0.001; "
            f"got {list(methods)} and {dict(grid)}"
        )
    if taken := {"method", "preset"}.intersection(grid):
        raise ConfigError(f"grid.{min(taken)} would take the place of --methods; name the methods there")
    found = {}
    for method in methods:
        options = method.rpartition(":")[2]
        if "=" in options:
            raise ConfigError(f"A grid takes methods without options, got {method}; give grid.method.{options}")
    for method, values in itertools.product(methods, itertools.product(*grid.values())):
        settings = dict(zip(grid, values, strict=True))
        label = ".".join([method, *(f"{name.rpartition('.')[2]}={value}" for name, value in settings.items())])
        found[label] = {"method": method, **_nested(settings)}
    return found


def rank_settings(plan: ComparisonPlan, cells: Sequence[CellResult]) -> list[TunedSetting]:
    """Settings with all of the plan's seeds, the best of each method first; of equals the one named first."""
    found = []
    for label in plan.methods:
        own = [cell for cell in cells if cell.method == label]
        if len(own) == len(plan.seeds) * len(plan.models):
            area = fmean(area_under_curve(cell.curve, plan.budget) for cell in own)
            without, with_skill = fmean(cell.without for cell in own), fmean(cell.with_skill for cell in own)
            found.append(TunedSetting(label, _method(plan, label), len(own), without, area, with_skill))
    order = list(dict.fromkeys(_method(plan, label) for label in plan.methods))
    return sorted(found, key=lambda setting: (order.index(setting.method), -setting.score))


def best_settings(ranked: Sequence[TunedSetting], share: float) -> tuple[str, ...]:
    """Labels of the best share of each method's settings, at least one of each."""
    methods = dict.fromkeys(setting.method for setting in ranked)
    own = {method: [setting.label for setting in ranked if setting.method == method] for method in methods}
    return tuple(label for labels in own.values() for label in labels[: max(1, math.ceil(share * len(labels)))])


def tune(
    plan: ComparisonPlan, *, rounds: int = 1, workers: int = 0, note: Callable[[str], object] = lambda text: None
) -> list[TunedSetting]:
    """Runs settings in rounds of successive halving; calling it again goes on.

    The last round has the plan's budget; every round before it has half the budget and half the updates of the next
    one, and the better half of each method's settings goes on (Jamieson and Talwalkar 2016, arXiv:1502.07943). One
    round is the whole grid. A plan's methods are settings, as :func:`cross` makes them.

    Returns:
        The settings of the last round, the best of each method first; empty if a round was interrupted.
    """
    if rounds < 1 or plan.budget >> (rounds - 1) < 1:
        raise ConfigError(f"rounds must be at least 1 and leave a budget to the first one, got {rounds}")
    labels, ranked = plan.methods, list[TunedSetting]()
    for number in range(rounds):
        smaller = _shortened(plan, labels, 2 ** (rounds - 1 - number), plan.folder / f"round{number + 1}")
        note(f"Round {number + 1} of {rounds}: {len(labels)} settings, {smaller.budget:,} generated tokens a run")
        ranked = rank_settings(smaller, compare(smaller, workers=workers, note=note))
        if len(ranked) < len(labels):
            return []
        labels = best_settings(ranked, 0.5)
    return ranked


def tuning_table(ranked: Sequence[TunedSetting]) -> Table:
    """A row per setting, percentages, the best of each method first."""
    heads = ["setting", "seeds", "score", "without the skill", "averaged over training", "with the skill"]
    rates = ((found.score, found.without, found.area, found.with_skill) for found in ranked)
    shown = [[f"{100 * rate:.1f}" for rate in own] for own in rates]
    rows: list[Row] = [[found.label, found.seeds, *cells] for found, cells in zip(ranked, shown, strict=True)]
    return Table(heads, rows, numbers=range(1, len(heads)))


def _shortened(plan: ComparisonPlan, labels: Sequence[str], factor: int, folder: Path) -> ComparisonPlan:
    """A round's plan: some of the settings, with a fraction of budget and updates."""
    overrides = {label: dict(plan.overrides[label]) for label in labels}
    for changes in overrides.values():
        if "steps" in changes:
            changes["steps"] = math.ceil(changes["steps"] / factor)
    config = plan.config.with_(budget_tokens=plan.budget // factor, steps=math.ceil(plan.config.steps / factor))
    return replace(plan, config=config, methods=tuple(labels), overrides=overrides, folder=folder)


def _method(plan: ComparisonPlan, label: str) -> str:
    return str(plan.overrides[label]["method"])


def _nested(settings: Mapping[str, Any]) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    for name, value in settings.items():
        group, dot, option = name.partition(".")
        options = f"{group.removesuffix('_options')}_options"
        if dot:
            changes.setdefault(options if options in TrainConfig.__dataclass_fields__ else group, {})[option] = value
        else:
            changes[name] = value
    return changes


def read_grid(options: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Values by setting from what was typed: a list as it is, a text split at its commas, anything else alone."""
    grid = {name: _values(value) for name, value in options.items()}
    for name, values in grid.items():
        if not values:
            raise ConfigError(f"A grid needs values for each setting, such as grid.{name}=1,2; got none")
    return grid


def _values(value: Any) -> list[Any]:
    if isinstance(value, str):
        return [typed(text) for text in value.split(",") if text.strip()]
    return list(value) if isinstance(value, list) else [value]
