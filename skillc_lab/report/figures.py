"""The PNG figures of a run and of an evaluation, of a width that a page shows without shrinking much."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from skillc_lab.report.diagnostic_panels import (
    draw_advantages,
    draw_cuts,
    draw_failed_rewarded,
    draw_lengths,
    quiet_diagnostics,
)
from skillc_lab.report.outcome_panels import draw_before_after, draw_outcome
from skillc_lab.report.panels import draw_active, draw_gap, draw_success, draw_type_success, type_legend
from skillc_lab.report.records import RunRecords
from skillc_lab.report.strips import draw_fraction, draw_gate
from skillc_lab.report.style import SOFT, figure_style, new_figure
from trainers.evaluation.paired_report import PairedReport

__all__ = ["save_figures", "save_outcome_figure"]

_WIDTH = 9.0
_NARROW = 7.2


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
    with figure_style():
        figures: dict[str, Any] = {
            "overview": _overview(run),
            "success": _single(draw_success, run),
            "success_by_type": _by_type(run),
            "gap": _single(draw_gap, run, types=True),
            "gate": _single(draw_gate, run, height=_strips_height(run)),
            "active": _single(draw_active, run),
            "rollout_fraction": _single(draw_fraction, run, height=_strips_height(run)),
            "diagnostics": _diagnostics(run),
        }
        if before is not None and after is not None:
            figures["before_after"] = _outcomes(before, after, run.task_types)
        return _save(figures, out)


def save_outcome_figure(report: PairedReport, out: Path, *, before: PairedReport | None = None) -> dict[str, Path]:
    """Draws evaluations without a run: ``before_after`` if there are two, else ``outcome``; errors as above."""
    with figure_style():
        if before is not None:
            return _save({"before_after": _outcomes(before, report)}, out)
        return _save({"outcome": _outcomes(report)}, out)


def _save(figures: Mapping[str, Any], out: Path) -> dict[str, Path]:
    out.mkdir(parents=True, exist_ok=True)
    drawn = {name: out / f"{name}.png" for name in figures}
    for name, figure in figures.items():
        figure.savefig(drawn[name])
    return drawn


def _single(
    draw: Callable[[Any, RunRecords], None], run: RunRecords, *, types: bool = False, height: float = 4.3
) -> Any:
    figure = new_figure(_NARROW, height)
    draw(figure.subplots(), run)
    if types:
        type_legend(figure, run.task_types)
    return figure


def _strips_height(run: RunRecords) -> float:
    return 1.5 + 0.55 * max(2, len(run.task_types))


def _overview(run: RunRecords) -> Any:
    height = 1.1 + 0.36 * max(3, len(run.task_types))
    figure = new_figure(_WIDTH, 7.0 + height)
    grid = figure.subplot_mosaic(
        [["success", "success"], ["active", "gap"], ["gate", "fraction"]],
        height_ratios=[3.2, 3.1, height],
    )
    draw_success(grid["success"], run)
    draw_active(grid["active"], run)
    draw_gap(grid["gap"], run)
    draw_gate(grid["gate"], run)
    draw_fraction(grid["fraction"], run)
    type_legend(figure, run.task_types)
    return figure


def _by_type(run: RunRecords) -> Any:
    kinds = run.task_types
    columns = min(3, max(1, len(kinds)))
    rows = max(1, -(-len(kinds) // columns))
    figure = new_figure(_WIDTH if columns > 1 else _NARROW, 2.6 * rows + (0.9 if columns > 1 else 2.0))
    axes = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).flat
    for i, ax in enumerate(axes):
        if i >= len(kinds):
            ax.set_visible(False)
            continue
        draw_type_success(ax, run, kinds[i])
        ax.label_outer()
    figure.suptitle(
        "Success per type on the held-back panel\n95 % intervals; grey: retired", x=0.01, ha="left", fontsize=11
    )
    if kinds:
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure


def _diagnostics(run: RunRecords) -> Any:
    """The panels that have something to show; what has not stands below them in words."""
    quiet = quiet_diagnostics(run)
    optional = {"failed_rewarded": draw_failed_rewarded, "cuts": draw_cuts}
    draws = [draw_advantages, draw_lengths]
    draws += [draw for name, draw in optional.items() if name not in quiet]
    rows = -(-len(draws) // 2)
    figure = new_figure(_WIDTH, 3.3 * rows + 0.2)
    axes = list(figure.subplots(rows, 2, squeeze=False).flat)
    for draw, ax in zip(draws, axes, strict=False):
        draw(ax, run)
    for spare in axes[len(draws) :]:
        spare.set_visible(False)
    figure.supxlabel(" ".join(quiet.values()), x=0.01, ha="left", fontsize=8.5, color=SOFT)
    return figure


def _outcomes(first: PairedReport, second: PairedReport | None = None, order: Sequence[str] = ()) -> Any:
    """One evaluation alone, or two of the same panel."""
    figure = new_figure(_NARROW, 2.1 + (0.62 if second else 0.45) * len(first.per_type))
    if second is None:
        draw_outcome(figure.subplots(), first, order)
    else:
        draw_before_after(figure.subplots(), first, second, order)
    return figure
