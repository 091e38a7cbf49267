"""Panels on what the advantages did: whom they rewarded, how long episodes were, and what cut them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from skillc_lab.report.records import RunRecords, Series, moving_mean
from skillc_lab.report.style import WITH, WITHOUT, step_axis, title

__all__ = ["draw_advantages", "draw_cuts", "draw_failed_rewarded", "draw_lengths", "quiet_diagnostics"]

_WINDOW = 10
_CONDITIONS = ((WITH, "with"), (WITHOUT, "without"))
_OUTCOMES: Mapping[str, tuple[Mapping[str, Any], str, str]] = {
    "with_success": (WITH, "-", "with, solved"),
    "with_failure": (WITH, ":", "with, failed"),
    "without_success": (WITHOUT, "-", "without, solved"),
    "without_failure": (WITHOUT, ":", "without, failed"),
}


def draw_advantages(axes: Any, run: RunRecords) -> None:
    """Mean advantage by condition and outcome."""
    axes.axhline(0.0, color="#9aa1ac", linewidth=0.9)
    for key, (style, dashes, label) in _OUTCOMES.items():
        series = run.nested("advantage_mean", key)
        if series.steps:
            smooth = moving_mean(series, _WINDOW)
            axes.plot(smooth.steps, smooth.values, color=style["color"], linestyle=dashes, label=label)
    title(axes, "Mean advantage", f"by condition and outcome; mean of {_WINDOW} steps")
    axes.set_ylabel("advantage")
    _finish(axes, run)


def draw_failed_rewarded(axes: Any, run: RunRecords) -> None:
    """How many failed rollouts are reinforced nevertheless."""
    _shares(axes, run, [(WITHOUT, "failed rollouts", run.overall("failed_with_positive_advantage"))])
    title(axes, "Failed, yet reinforced", f"share of failed rollouts; mean of {_WINDOW} steps")


def draw_lengths(axes: Any, run: RunRecords) -> None:
    """Length of training episodes by condition."""
    top = 1.0
    for style, key in ((WITH, "with"), (WITHOUT, "without")):
        series = run.overall(f"episode_length_{key}")
        if series.steps:
            smooth = moving_mean(series, _WINDOW)
            top = max(top, *smooth.values)
            axes.plot(
                smooth.steps, smooth.values, color=style["color"], linestyle=style["linestyle"], label=style["label"]
            )
    title(axes, "Length of training episodes", f"mean of {_WINDOW} training steps")
    axes.set_ylabel("environment steps")
    axes.set_ylim(0, 1.1 * top)
    _finish(axes, run)


def draw_cuts(axes: Any, run: RunRecords) -> None:
    """Which share of the training episodes the context cut, by condition."""
    _shares(axes, run, [(style, style["label"], run.overall(f"cut_by_context_{key}")) for style, key in _CONDITIONS])
    title(axes, "Cut by the context's end", f"share of training episodes; mean of {_WINDOW} steps")


def quiet_diagnostics(run: RunRecords) -> dict[str, str]:
    """What needs no panel, by name: shares that were 0 in every update, or were not recorded; each as a sentence."""
    measured = {
        "failed_rewarded": ("a failed rollout was reinforced", ["failed_with_positive_advantage"]),
        "cuts": ("the context cut a training episode", [f"cut_by_context_{key}" for _, key in _CONDITIONS]),
    }
    found = {name: [v for key in keys for v in run.overall(key).values] for name, (_, keys) in measured.items()}
    return {
        name: f"In no update {what}." if found[name] else f"It was not recorded whether {what}."
        for name, (what, _) in measured.items()
        if not any(found[name])
    }


def _shares(axes: Any, run: RunRecords, lines: Sequence[tuple[Mapping[str, Any], str, Series]]) -> None:
    """Shares on a scale that fits them."""
    top = max((value for _, _, series in lines for value in series.values), default=1.0)
    for style, label, series in lines:
        smooth = moving_mean(series, _WINDOW)
        axes.plot(smooth.steps, smooth.values, color=style["color"], linestyle=style["linestyle"], label=label)
    axes.set_ylim(0.0, min(1.03, 1.15 * top))
    axes.set_ylabel("share")
    step_axis(axes, run)
    if len(lines) > 1:
        axes.legend(loc="best", handlelength=1.8)


def _finish(axes: Any, run: RunRecords) -> None:
    step_axis(axes, run)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="best", ncols=2, handlelength=1.8)
