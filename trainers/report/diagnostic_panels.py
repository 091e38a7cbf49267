"""Panels on what the advantages did: whom they rewarded, and what became of the episodes' length."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainers.report.records import RunRecords, moving_mean
from trainers.report.style import WITH, WITHOUT, rate_axis, step_axis, title

__all__ = ["draw_advantages", "draw_failed_rewarded", "draw_lengths"]

_WINDOW = 10
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
    title(axes, "Mean advantage", f"by condition and outcome of the rollout; mean of {_WINDOW} steps")
    axes.set_ylabel("advantage")
    _finish(axes, run)


def draw_failed_rewarded(axes: Any, run: RunRecords) -> None:
    """How many failed rollouts are reinforced nevertheless."""
    smooth = moving_mean(run.overall("failed_with_positive_advantage"), _WINDOW)
    axes.plot(smooth.steps, smooth.values, color=WITHOUT["color"])
    title(
        axes, "Failed rollouts with a positive advantage", f"reinforced although they failed; mean of {_WINDOW} steps"
    )
    step_axis(axes, run)
    rate_axis(axes, "share of failed rollouts")


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
    title(axes, "Length of training episodes", f"steps per episode; mean of {_WINDOW} training steps")
    axes.set_ylabel("environment steps")
    axes.set_ylim(0, 1.1 * top)
    _finish(axes, run)


def _finish(axes: Any, run: RunRecords) -> None:
    step_axis(axes, run)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="best", ncols=2, handlelength=1.8)
