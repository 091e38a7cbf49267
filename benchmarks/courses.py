"""Pictures of runs: their course by updates or tokens, of each task type too, and success before and after."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

from skillc_gym.envs.registry import short_type
from skillc_lab.report import LineStyle, canvas, method_styles, rate_axis, rates_across, shared_legend, title
from skillc_lab.studies import CurvePoint, MethodRow, Regime, draw_band


def draw_demonstration(record: Mapping[str, Any], path: Path) -> None:
    """Draws a demonstration's methods over seeds: success on the panel by updates, and held-out tasks at the end."""
    by_method: dict[str, list[Mapping[str, Any]]] = {}
    for run in record["runs"]:
        by_method.setdefault(run["preset"], []).append(run)
    styles = method_styles(list(by_method))
    with canvas(path, 9.0, 4.2) as figure:
        left, right = figure.subplots(1, 2, width_ratios=[1.35, 1])
        for name, runs in by_method.items():
            courses = [[float(each["overall_without"]) for each in run["validations"]] for run in runs]
            _draw_lines(left, [int(each["step"]) for each in runs[0]["validations"]], courses, styles[name])
        said = _each_rate({styles[name].label: _average(runs) for name, runs in by_method.items()})
        how = "success without the skill, held-back panel; thin: seeds, bold: their mean"
        title(left, f"Averaged over training {said}", how)
        left.set_xlabel("update")
        rate_axis(left)
        left.legend(loc="lower right")
        rows = [(name, arm) for arm in ("without", "with") for name in by_method]
        for row, (name, arm) in enumerate(rows):
            for when, face in (("before", "white"), ("after", styles[name].colour)):
                found = [run[f"sr_{arm}_{when}"] for run in by_method[name]]
                look = {**styles[name].look, "linestyle": "none", "mfc": face}
                right.plot(found, [row] * len(found), alpha=0.8, **look)
        rates_across(right, [f"{styles[name].label}, {arm}" for name, arm in rows])
        ends = {name: fmean(run["sr_without_after"] for run in runs) for name, runs in by_method.items()}
        said = _each_rate({styles[name].label: end for name, end in ends.items()})
        title(right, f"After it {said}", "without the skill; a point per seed, held-out tasks; hollow: before")


def draw_night(record: Mapping[str, Any], path: Path) -> None:
    """Draws courses from one start: success in training without the skill, and on unseen tasks before and after."""
    styles = method_styles(list(record["methods"]))
    before = record["before"]["overall"]
    with canvas(path, 9.6, 4.4) as figure:
        left, right = figure.subplots(1, 2, width_ratios=[1.5, 1], sharey=True)
        for method, found in record["methods"].items():
            # A method that shows the skill to every rollout has no course here.
            courses = [[_or_nan(each["success_without"]) for each in run["updates"]] for run in found["runs"]]
            _draw_lines(left, range(1, len(courses[0]) + 1), courses, styles[method], marker=None)
            for arm, dashes in (("with", "--"), ("without", "-")):
                for run in found["runs"]:
                    ends = (before[f"sr_{arm}"], run["after"]["overall"][f"sr_{arm}"])
                    right.plot((0, 1), ends, dashes, color=styles[method].colour, marker="o", markersize=4)
        left.set_xlabel("update")
        left.xaxis.get_major_locator().set_params(integer=True)
        left.legend(loc="upper left")
        rate_axis(left)
        right.set_xticks([0, 1], ["before", "after"])
        right.set_xlim(-0.15, 1.15)
        title(left, "Rollouts without the skill in training", "share that succeeds; thin: seeds, bold: their mean")
        title(right, "On unseen houses", "a line per seed; dashed: with the skill")


def _or_nan(rate: float | None) -> float:
    return math.nan if rate is None else rate


def _each_rate(rates: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {100 * rate:.0f} %" for name, rate in rates.items())


def _average(runs: Sequence[Mapping[str, Any]]) -> float:
    """Success without the skill averaged over updates, the runs' mean; validations are as far apart as each other."""
    return fmean(
        (before["overall_without"] + after["overall_without"]) / 2
        for run in runs
        for before, after in pairwise(run["validations"])
    )


def _draw_lines(
    axes: Any, steps: Sequence[int], courses: Sequence[Sequence[float]], style: LineStyle, **look: Any
) -> None:
    """Every course thin, and their mean."""
    for course in courses:
        axes.plot(steps, course, color=style.colour, linewidth=0.7, alpha=0.45)
    mean = [fmean(at) for at in zip(*courses, strict=True)]
    label = f"{style.label} ({len(courses)} seed{'s' * (len(courses) > 1)})"
    axes.plot(steps, mean, label=label, **{**style.look, **look})


def draw_types(regime: Regime, methods: Sequence[str], path: Path) -> None:
    """Draws two methods' courses on the validation tasks of every task type, in a plot each."""
    styles = method_styles(methods)
    rows = [row for name in methods if (row := regime.row(name))]
    kinds = sorted({outcome.task_type for outcome in rows[0].cells[0].outcomes})
    parted = {kind: [_on_type(row, nth, len(kinds)) for row in rows] for nth, kind in enumerate(kinds)}
    ends = {kind: [100 * fmean(cell.curve[-1].without for cell in row.cells) for row in parted[kind]] for kind in kinds}
    most = max(kinds, key=lambda kind: ends[kind][1] - ends[kind][0])
    said = f"At the end {short_type(most)} differs most, {ends[most][0]:.0f} to {ends[most][1]:.0f} %"
    with canvas(path, 10.5, 6.0, f"{said} of its validation tasks") as figure:
        for axes, kind in zip(figure.subplots(2, 3, sharex=True, sharey=True).flat, kinds, strict=True):
            for row in parted[kind]:
                draw_band(axes, row, regime.budget, styles[row.method])
            title(axes, f"{short_type(kind)}: {ends[kind][0]:.0f} to {ends[kind][1]:.0f} %")
            axes.set_xlabel("tokens (thousands); ± standard error" if axes.get_subplotspec().is_last_row() else "")
            rate_axis(axes, "success without the skill" if axes.get_subplotspec().is_first_col() else "")
        shared_legend(figure, len(rows))


def _on_type(row: MethodRow, nth: int, of: int) -> MethodRow:
    """A row's courses on one task type: a validation panel has as many tasks of each, in the order of their names."""

    def on_type(point: CurvePoint) -> CurvePoint:
        size = len(point.won_without) // of
        return replace(point, without=point.won_without[nth * size : (nth + 1) * size].count("1") / size)

    return replace(row, cells=[replace(cell, curve=tuple(map(on_type, cell.curve))) for cell in row.cells])
