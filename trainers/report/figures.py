"""The PNG figures of a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from trainers.evaluation.paired_report import PairedReport
from trainers.report import diagnostic_panels, panels
from trainers.report.records import RunRecords
from trainers.report.style import figure_style, new_figure

__all__ = ["save_figures"]


def save_figures(
    run: RunRecords, out: Path, *, before: PairedReport | None = None, after: PairedReport | None = None
) -> dict[str, Path]:
    """Draws everything the records hold.

    Args:
        run: The run's metrics.
        out: Folder for the PNG files; made if it is missing.
        before: Evaluation of the policy before training.
        after: Evaluation after it, on the same panel.

    Returns:
        Path of each figure, by name: overview, success, success_by_type, gap, gate, active, rollout_fraction,
        diagnostics and, with both evaluations, before_after.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    out.mkdir(parents=True, exist_ok=True)
    drawn: dict[str, Path] = {}
    with figure_style():
        figures: dict[str, Any] = {
            "overview": _overview(run),
            "success": _single(panels.draw_success, run, types=False),
            "success_by_type": _by_type(run),
            "gap": _single(panels.draw_gap, run),
            "gate": _single(panels.draw_gate, run),
            "active": _single(panels.draw_active, run, types=False),
            "rollout_fraction": _single(panels.draw_fraction, run),
            "diagnostics": _diagnostics(run),
        }
        if before is not None and after is not None:
            figures["before_after"] = _before_after(before, after, run.task_types)
        for name, figure in figures.items():
            drawn[name] = out / f"{name}.png"
            figure.savefig(drawn[name])
    return drawn


def _single(draw: Callable[[Any, RunRecords], None], run: RunRecords, *, types: bool = True) -> Any:
    figure = new_figure(7.2, 4.3)
    draw(figure.subplots(), run)
    if types:
        panels.type_legend(figure, run.task_types)
    return figure


def _overview(run: RunRecords) -> Any:
    figure = new_figure(14.5, 8.2)
    grid = figure.subplot_mosaic([["success", "success", "active"], ["gap", "gate", "fraction"]])
    panels.draw_success(grid["success"], run)
    panels.draw_active(grid["active"], run)
    panels.draw_gap(grid["gap"], run)
    panels.draw_gate(grid["gate"], run)
    panels.draw_fraction(grid["fraction"], run)
    panels.type_legend(figure, run.task_types)
    return figure


def _by_type(run: RunRecords) -> Any:
    kinds = run.task_types
    columns = min(3, max(1, len(kinds)))
    rows = max(1, -(-len(kinds) // columns))
    figure = new_figure(4.1 * columns, 2.7 * rows + 0.5)
    axes = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).flat
    for i, ax in enumerate(axes):
        if i >= len(kinds):
            ax.set_visible(False)
            continue
        panels.draw_type_success(ax, run, kinds[i])
        ax.label_outer()
    figure.suptitle(
        "Success per type on the held-back panel (95 % intervals); grey: retired", x=0.01, ha="left", fontsize=10.5,
        fontweight="bold",
    )  # fmt: skip
    if kinds:
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure


def _diagnostics(run: RunRecords) -> Any:
    figure = new_figure(14.5, 3.8)
    left, middle, right = figure.subplots(1, 3)
    diagnostic_panels.draw_advantages(left, run)
    diagnostic_panels.draw_failed_rewarded(middle, run)
    diagnostic_panels.draw_lengths(right, run)
    return figure


def _before_after(before: PairedReport, after: PairedReport, order: Sequence[str]) -> Any:
    figure = new_figure(7.6, 2.1 + 0.62 * len(before.per_type))
    panels.draw_before_after(figure.subplots(), before, after, order)
    return figure
