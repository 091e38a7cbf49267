"""Demonstrations over seeds: the course of success without the skill, and held-out success before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillc_gym.errors import ConfigError
from skillc_lab.report.records import Series
from skillc_lab.report.style import (
    SOFT,
    TypeStyle,
    figure_style,
    new_figure,
    rate_axis,
    rates_across,
    title,
    type_styles,
)
from trainers.stats import MeanEstimate, mean_over_seeds

__all__ = ["SeedRun", "mean_curve", "save_comparison"]


@dataclass(frozen=True)
class SeedRun:
    """One run of a method, as far as a comparison needs it.

    Attributes:
        method: The method's name.
        seed: The run's seed.
        course: Success without the skill on the held-back panel over the updates.
        before: Held-out success before training, by condition ("with", "without").
        after: The same after training.
    """

    method: str
    seed: int
    course: Series
    before: Mapping[str, float]
    after: Mapping[str, float]

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> SeedRun:
        """Reads a run of a recorded demonstration (``preset``, ``seed``, ``validations``, ``sr_with_before``, ...)."""
        found = record["validations"]
        course = Series([int(v["step"]) for v in found], [float(v["overall_without"]) for v in found])
        before, after = (
            {arm: float(record[f"sr_{arm}_{when}"]) for arm in ("with", "without")} for when in ("before", "after")
        )
        return cls(str(record["preset"]), int(record["seed"]), course, before, after)


def mean_curve(runs: Sequence[SeedRun]) -> list[tuple[int, MeanEstimate]]:
    """Mean over seeds with Student's interval at every step that all runs measured."""
    shared = sorted(set.intersection(*(set(run.course.steps) for run in runs)))
    at = [dict(zip(run.course.steps, run.course.values, strict=True)) for run in runs]
    return [(step, mean_over_seeds([values[step] for values in at])) for step in shared]


def save_comparison(runs: Sequence[SeedRun], path: Path, *, heading: str = "Methods side by side") -> Path:
    """Draws several methods' runs into one PNG.

    Args:
        runs: Runs of the methods to compare, on the same panel; a mean gets an interval from two seeds on.
        path: The file; its folder is made.
        heading: What is compared where.

    Raises:
        ConfigError: There are no runs.
        MissingExtraError: matplotlib is not installed.
    """
    if not runs:
        raise ConfigError("A comparison needs the runs of at least one method, got none")
    methods = {name: [run for run in runs if run.method == name] for name in dict.fromkeys(r.method for r in runs)}
    styles = type_styles(list(methods))
    with figure_style():
        figure = new_figure(9.0, 3.7 + 0.25 * len(methods))
        left, right = figure.subplots(1, 2, width_ratios=[1.35, 1])
        for name, found in methods.items():
            _draw_course(left, found, styles[name])
        title(left, "Success without the skill", "held-back panel; thin: seeds, bold: mean, band: 95 % (Student's t)")
        left.set_xlabel("update")
        left.xaxis.get_major_locator().set_params(integer=True)
        rate_axis(left, "success rate")
        left.legend(loc="best")
        _draw_outcomes(right, methods, styles)
        figure.suptitle(heading, x=0.01, ha="left", fontsize=11.5)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path)
    return path


def _draw_course(axes: Any, runs: Sequence[SeedRun], style: TypeStyle) -> None:
    for run in runs:
        axes.plot(run.course.steps, run.course.values, color=style.colour, linewidth=0.7, alpha=0.45)
    curve = mean_curve(runs)
    steps, bounds = [step for step, _ in curve], [estimate.interval for _, estimate in curve if estimate.interval]
    if len(bounds) == len(curve):
        low, high = [max(0.0, b.low) for b in bounds], [min(1.0, b.high) for b in bounds]
        axes.fill_between(steps, low, high, color=style.colour, alpha=0.16, linewidth=0)
    label = f"{style.label} ({len(runs)} {'seed' if len(runs) == 1 else 'seeds'})"
    look = {"color": style.colour, "linestyle": style.linestyle, "marker": style.marker}
    axes.plot(steps, [estimate.mean for _, estimate in curve], label=label, **look)


def _draw_outcomes(axes: Any, methods: Mapping[str, Sequence[SeedRun]], styles: Mapping[str, TypeStyle]) -> None:
    rows = [(arm, name) for arm in ("without", "with") for name in methods]
    for row, (arm, name) in enumerate(rows):
        for when, face, offset in (("before", "white", -0.14), ("after", styles[name].colour, 0.14)):
            values = [getattr(run, when)[arm] for run in methods[name]]
            _draw_estimate(axes, row + offset, values, styles[name], face)
    axes.axhline(len(methods) - 0.5, color="#c9cdd4", linewidth=0.8)
    rates_across(axes, [f"{styles[name].label}, {arm}" for arm, name in rows])
    title(axes, "Held-out tasks", "hollow: before; filled: after; ticks: seeds; bars: 95 %")


def _draw_estimate(axes: Any, y: float, values: Sequence[float], style: TypeStyle, face: str) -> None:
    estimate = mean_over_seeds(values)
    axes.plot(values, [y] * len(values), linestyle="none", marker="|", markersize=9, color=SOFT, alpha=0.7)
    if estimate.interval is not None:
        ends = [max(0.0, estimate.interval.low), min(1.0, estimate.interval.high)]
        axes.plot(ends, [y, y], color=style.colour, linewidth=1.3)
    axes.plot(estimate.mean, y, marker=style.marker, color=style.colour, mfc=face, markersize=6, zorder=4)
