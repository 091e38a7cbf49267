"""Plots on the course of a run; each draws one thing onto given axes, under a title that says what it shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from textwrap import wrap
from typing import Any

from skillc_lab.report.records import RunRecords, Series, moving_mean
from skillc_lab.report.style import SOFT, WITH, WITHOUT, LineStyle, rate_axis, step_axis, title, type_styles
from trainers.stats import wilson

Draw = Callable[[Any, RunRecords], None]

_WINDOW = 10
_STRIP = 0.78
"""Height of a strip's scale from 0 to 1, of the strip's 1."""
_REASONS: Mapping[str, str] = {"gap": "its own gap", "budget": "the budget"}
_ARMS = ((WITHOUT, "without", -1), (WITH, "with", 1))
_OUTCOMES: Mapping[str, tuple[Mapping[str, Any], str, str]] = {
    "with_success": (WITH, "-", "with, solved"),
    "with_failure": (WITH, ":", "with, failed"),
    "without_success": (WITHOUT, "-", "without, solved"),
    "without_failure": (WITHOUT, ":", "without, failed"),
}
_COUNTED: Mapping[str, str] = {
    "failed rollouts were reinforced": "failed_with_positive_advantage",
    "training episodes were cut by the context": "cut_by_context",
}
"""Shares of an update's rollouts, as a sentence has them."""


def plots_of(run: RunRecords) -> dict[str, tuple[Draw, float]]:
    """The plots that mean something for a run's method, by name, with the height of each in inches."""
    strips = 1.5 + 0.5 * max(2, len(run.task_types))
    found: dict[str, tuple[Draw, float]] = {"success": (draw_success, 3.7)}
    if any(run.validated("gap_smoothed", kind).steps for kind in run.task_types):
        found["gap"] = (draw_gap, 3.7)
    if run.retires:
        found["active"] = (draw_active, strips)
    if run.gated:
        found["gate"] = (draw_gate, strips)
    if len(_shares(run)) > 1:
        found["rollout_fraction"] = (draw_fraction, strips)
    found["advantages"] = (draw_advantages, 3.7)
    return found


def said_of(run: RunRecords) -> list[str]:
    """What needs no plot, as sentences: a share that never changed, failures that were reinforced, episodes cut."""
    shares, said = _shares(run), []
    if len(shares) == 1:
        (share,) = shares
        whom = {0.0: "No training rollout sees", 1.0: "Every training rollout sees"}
        said.append(whom.get(share, f"{100 * share:.0f} % of each type's training rollouts see") + " the skill.")
    for what, key in _COUNTED.items():
        values = run.overall(key).values
        most = f"At most {100 * max(values):.0f} % of an update's {what}." if values else ""
        said.append(most or f"It was not recorded how many {what}.")
    return said


def _shares(run: RunRecords) -> set[float]:
    return {value for kind in run.task_types for value in run.trained("rollout_fraction_with", kind).values}


def _course(values: Sequence[float]) -> str:
    """The first and the last value in words."""
    ends = [f"{100 * value:.0f}" for value in (*values[:1], *values[-1:])]
    return " → ".join(ends if len(values) > 1 else ends[:1])


def validated_at(run: RunRecords) -> str:
    """The step of the last validation, where updates have followed it."""
    last = int(run.validations[-1]["step"]) if run.validations else run.last_step
    return "" if last == run.last_step else f" (validated at step {last} of {run.last_step})"


def _mean_over(found: Sequence[Series]) -> Series:
    """The mean of some series at every step that any of them has."""
    at: dict[int, list[float]] = {}
    for series in found:
        for step, value in zip(series.steps, series.values, strict=True):
            at.setdefault(step, []).append(value)
    return Series(sorted(at), [fmean(at[step]) for step in sorted(at)])


# Success and the gap --------------------------------------------------------------------------------------------------


def draw_success(axes: Any, run: RunRecords) -> None:
    """Success over all types: the validation panel with intervals, and training rollouts as a moving mean."""
    tasks, said = run.panel_size(), []
    for style, key, side in _ARMS:
        panel = run.overall(f"overall_{key}", "validation")
        _points(axes, panel, tasks, style, 0.003 * run.total_steps * side)
        _smooth(axes, run.overall(f"success_{key}"), color=style["color"], linewidth=1, alpha=0.45, zorder=1)
        said += [f"{key} the skill {_course(panel.values)} %"] * bool(panel.steps)
    how = f"points: held-back panel of {tasks} tasks, 95 % interval; thin: training rollouts, mean of {_WINDOW} steps"
    title(axes, f"Success {', '.join(said)}{validated_at(run)}" if said else "No validation yet", how)
    step_axis(axes, run.total_steps)
    rate_axis(axes)
    _legend(axes)


def draw_type(axes: Any, run: RunRecords, task_type: str, style: LineStyle) -> None:
    """One type's success on the validation panel, and where it retired."""
    tasks, said = run.panel_size(task_type), []
    for look, key, side in _ARMS:
        found = run.validated(f"sr_{key}", task_type)
        _points(axes, found, tasks, look, 0.005 * run.total_steps * side)
        said += [f"{key} {_course(found.values)} %"] * bool(found.steps)
    axes.set_title("\n".join(wrap(f"{style.label}: {', '.join(said)}", 42)), fontsize=9.5)
    if task_type in run.retirements:
        _shade_retired(axes, run, *run.retirements[task_type])
    step_axis(axes, run.total_steps)
    rate_axis(axes, "")
    axes.label_outer()


def _points(axes: Any, series: Series, n: int, style: Mapping[str, Any], apart: float) -> None:
    """Points with intervals; the conditions stand a little apart so that neither hides the other."""
    if not series.steps:
        return
    look = {"markersize": 4.5, "linewidth": 1.6, "capsize": 2, "elinewidth": 0.9, **style}
    intervals = [wilson(round(v * n), n) for v in series.values] if n else []
    below = [max(0.0, v - i.low) for v, i in zip(series.values, intervals, strict=False)]
    above = [max(0.0, i.high - v) for v, i in zip(series.values, intervals, strict=False)]
    steps = [step + apart for step in series.steps]
    axes.errorbar(steps, series.values, yerr=[below, above] if n else None, zorder=3, **look)


def _shade_retired(axes: Any, run: RunRecords, step: int, reason: str) -> None:
    """Greys the steps after a retirement and says within the grey why; where there is little room, upright."""
    axes.axvspan(step, run.total_steps * 1.02, color="#f0f1f4", zorder=0)
    upright, text = step > 0.6 * run.total_steps, f"retired by {_REASONS.get(reason, reason)}"
    place = {"xytext": (4, 1), "textcoords": "offset points", "ha": "left", "va": "bottom"}
    axes.annotate(text, (step, 0.0), rotation=90 * upright, fontsize=6 if upright else 8, color=SOFT, **place)


def draw_gap(axes: Any, run: RunRecords) -> None:
    """The smoothed gap per type until it retires, then faint, with the threshold below which a type retires."""
    found = {kind: run.validated("gap_smoothed", kind) for kind in run.task_types}
    values = [value for series in found.values() for value in series.values]
    axes.axhline(0.0, color="#c9cdd4", linewidth=0.9, zorder=1)
    for kind, style in type_styles(run.task_types).items():
        end = run.retirements.get(kind, (run.total_steps, ""))[0]
        until, later = found[kind].part(last=end), found[kind].part(first=end)
        axes.plot(until.steps, until.values, label=style.label, **style.look)
        axes.plot(later.steps, later.values, alpha=0.25, color=style.colour, linestyle=style.linestyle)
        if kind in run.retirements and until.steps:
            mark = {"marker": "x", "color": style.colour, "markersize": 9, "mew": 2.2, "zorder": 5}
            axes.plot(until.steps[-1], until.values[-1], **mark)
    rates = [run.overall(f"overall_{arm}", "validation").values for arm in ("with", "without")]
    measured = [with_ - without for with_, without in zip(*rates, strict=False)]
    how = "lines: by type, smoothed from what the curriculum began with"
    how += "; a cross: retired, then faint" * bool(run.retirements)
    title(axes, f"With minus without: {_course(measured)} points", how)
    step_axis(axes, run.total_steps)
    axes.set_ylim(min([-0.12, *(v - 0.05 for v in values)]), max([0.5, *(v + 0.05 for v in values)]))
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f}")
    axes.set_ylabel("points")
    if run.threshold is not None:
        _mark_threshold(axes, run.threshold)


def _mark_threshold(axes: Any, threshold: float) -> None:
    axes.axhline(threshold, color=SOFT, linewidth=1.0, linestyle=(0, (5, 3)), zorder=1)
    place = {"xycoords": ("axes fraction", "data"), "xytext": (-2, -3), "textcoords": "offset points"}
    box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.8}
    look = {"ha": "right", "va": "top", "fontsize": 8, "color": SOFT, "bbox": box}
    axes.annotate(f"retires below {100 * threshold:g}", (1.0, threshold), **place, **look)


# Types over the steps: which are active, and a strip for each, so that no line hides another --------------------------


def draw_active(axes: Any, run: RunRecords) -> None:
    """Which types are active when, and why they left."""
    styles = type_styles(run.task_types)
    listed = [record.get("active") for record in run.validations]
    active_ever = {str(kind) for kinds in listed if isinstance(kinds, list) for kind in kinds} | set(run.retirements)
    for row, (kind, style) in enumerate(styles.items()):
        if kind in active_ever:
            _bar(axes, run, row, kind, style)
    budget = f"; budget K(t) = {', '.join(map(str, run.capacity))} in equal stages" if run.capacity else ""
    gone = len(run.retirements.keys() & styles.keys())
    types = "task types" if gone == len(run.retirements) else "task types drawn"
    what = f"{gone} of {len(styles)} {types} gave their skill up" if run.retirements else ""
    how = f"a bar ends where the type retires{budget}"
    title(axes, what or "Every task type keeps its skill", how, _name_types(axes, range(len(styles)), styles))
    axes.set_ylim(len(styles) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    step_axis(axes, run.total_steps)


def _bar(axes: Any, run: RunRecords, row: int, kind: str, style: LineStyle) -> None:
    end, reason = run.retirements.get(kind, (run.last_step, ""))
    axes.barh(row, end, height=0.55, color=style.colour, alpha=0.5)
    text = f"step {end}: {_REASONS.get(reason, reason)}" if reason else "active to the end"
    inside = end > 0.5 * run.total_steps
    place = {"xytext": (-5 if inside else 5, 0), "textcoords": "offset points", "va": "center"}
    axes.annotate(text, (end, row), ha="right" if inside else "left", fontsize=8.5, color="#111418", **place)


def draw_gate(axes: Any, run: RunRecords) -> None:
    """The gate per type while it is active."""
    ends = {kind: run.retirements.get(kind, (run.last_step, ""))[0] for kind in run.task_types}
    found = {kind: run.validated("gate", kind) for kind in ends}
    left = {kind: found[kind].part(last=max(0, ends[kind] - 1)) for kind in found if kind in run.retirements}
    mean, names = _draw_strips(axes, run, found | left, ends)
    how = "0.5: no gap; 1: the type leans wholly on its skill" + "; ends where it retires" * run.retires
    title(axes, "The gate goes from " + " to ".join(f"{v:.2f}" for v in mean.values[:1] + mean.values[-1:]), how, names)


def draw_fraction(axes: Any, run: RunRecords) -> None:
    """The share of training rollouts with the skill, per type."""
    found = {kind: run.trained("rollout_fraction_with", kind) for kind in run.task_types}
    _, names = _draw_strips(axes, run, found, dict.fromkeys(found, run.last_step))
    how = "share of each type's rollouts in the updates that trained it"
    # Of every type's own first and last value: an update may lack a type.
    ends = [[one.values[end] for one in found.values() if one.values] for end in (0, -1)]
    course = _course([fmean(values) for values in ends if values])
    title(axes, f"{course} % of training rollouts see the skill", how, names)


def _name_types(axes: Any, heights: Sequence[float], styles: Mapping[str, LineStyle]) -> float:
    """Writes the types' names beside a plot; the inches that they take of the figure's width."""
    names = [_brief(style.label) for style in styles.values()]
    axes.set_yticks(heights, names)
    columns = axes.get_subplotspec().get_gridspec().ncols
    return float(0.077 * columns * max(map(len, names), default=0))


def _brief(name: str) -> str:
    """A name as long as fits beside a plot; the legend has all of it."""
    return name if len(name) <= 14 else f"{name[:7]}\N{HORIZONTAL ELLIPSIS}{name[-6:]}"


def _draw_strips(
    axes: Any, run: RunRecords, found: Mapping[str, Series], ends: Mapping[str, int]
) -> tuple[Series, float]:
    """A strip for every type's figure, up to an end; their mean, and the inches that the types' names take."""
    styles = type_styles(run.task_types)
    for row, (kind, style) in enumerate(styles.items()):
        _strip(axes, row, found[kind], style, ends[kind])
    beside = _name_types(axes, [row + 1 - _STRIP / 2 for row in range(len(styles))], styles)
    axes.set_ylim(len(styles) + 0.08, 0.0)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    step_axis(axes, run.total_steps)
    return _mean_over(list(found.values())), beside


def _strip(axes: Any, row: int, series: Series, style: LineStyle, end: int) -> None:
    """Steps of one type's figure, filled down to the strip's own zero line, with its scale on the right."""
    place = {"xycoords": ("axes fraction", "data"), "xytext": (3, 0), "textcoords": "offset points", "va": "center"}
    for mark in (0.0, 0.5, 1.0):
        height = row + 1 - _STRIP * mark
        axes.axhline(height, color="#eceef1" if mark else "#d5d8de", linewidth=0.7, zorder=0)
        axes.annotate(f"{mark:g}", (1.0, height), fontsize=7, color=SOFT, **place)
    if series.steps:
        steps = [*series.steps, max(end, series.steps[-1])]
        heights = [row + 1 - _STRIP * value for value in (*series.values, series.values[-1])]
        axes.fill_between(steps, heights, row + 1, step="post", color=style.colour, alpha=0.22, linewidth=0)
        axes.plot(steps, heights, color=style.colour, drawstyle="steps-post", linewidth=1.5)


def type_legend(figure: Any, task_types: Sequence[str], columns: int = 8) -> None:
    """One legend of the types for a whole figure."""
    from matplotlib.lines import Line2D

    styles = type_styles(task_types).values()
    handles = [Line2D([], [], label=style.label, **style.look) for style in styles]
    if handles:
        longest = max(len(style.label) for style in styles)
        fitting = max(1, int(figure.get_figwidth() / (0.6 + 0.08 * longest)))
        figure.legend(handles=handles, loc="outside lower center", ncols=min(len(handles), columns, fitting))


# Whom the advantages rewarded -----------------------------------------------------------------------------------------


def draw_advantages(axes: Any, run: RunRecords) -> None:
    """Mean advantage by condition and outcome."""
    axes.axhline(0.0, color="#9aa1ac", linewidth=0.9)
    said = []
    for key, (style, dashes, label) in _OUTCOMES.items():
        found = run.trained("advantage_mean", key)
        _smooth(axes, found, color=style["color"], linestyle=dashes, label=label)
        if found.values and key.endswith("_success"):
            said.append(f"{key.removesuffix('_success')} {fmean(found.values):+.2f}")
    what = f"A solved rollout's advantage: {', '.join(said)}" if said else "No rollout was solved"
    title(axes, what, f"means over the run; lines by condition and outcome, mean of {_WINDOW} steps")
    axes.set_ylabel("advantage")
    step_axis(axes, run.total_steps)
    _legend(axes)


def _smooth(axes: Any, series: Series, **look: Any) -> None:
    """Draws the mean over the last steps, where anything was measured."""
    smooth = moving_mean(series, _WINDOW)
    if smooth.steps:
        axes.plot(smooth.steps, smooth.values, **look)


def _legend(axes: Any) -> None:
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="best", handlelength=1.8, fontsize=8.5)
