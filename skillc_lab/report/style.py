"""The look of the figures: colours that colour-blind readers can tell apart, and the furniture all panels share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from skillc_gym.errors import missing_extra
from skillc_lab.report.records import RunRecords
from trainers.tracking import short_type

__all__ = [
    "SOFT",
    "WITH",
    "WITHOUT",
    "TypeStyle",
    "figure_style",
    "new_figure",
    "rate_axis",
    "rates_across",
    "step_axis",
    "title",
    "type_styles",
]

# Okabe and Ito's palette without black and yellow, which stand for conditions and vanish on white.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
_MARKERS = ("o", "s", "^", "D", "v", "P")
_DASHES: tuple[Any, ...] = ("-", (0, (4, 1.5)), (0, (1, 1.2)))

SOFT = "#5b626d"
"""Colour of explanations."""

WITH: dict[str, Any] = {"color": "#8a8f98", "marker": "s", "linestyle": (0, (4, 1.5)), "label": "with the skill"}
WITHOUT: dict[str, Any] = {"color": "#111418", "marker": "o", "linestyle": "-", "label": "without the skill"}


@dataclass(frozen=True)
class TypeStyle:
    """How one task type is drawn, the same in every figure."""

    label: str
    colour: str
    marker: str
    linestyle: Any


def type_styles(task_types: Sequence[str]) -> dict[str, TypeStyle]:
    """One style per type, by its place in the fixed order; more than six types differ by their dashes too."""
    return {
        kind: TypeStyle(short_type(kind), _COLOURS[i % 6], _MARKERS[i % 6], _DASHES[i // 6 % len(_DASHES)])
        for i, kind in enumerate(task_types)
    }


@contextmanager
def figure_style() -> Iterator[None]:
    """Applies the look to what is drawn within, and leaves matplotlib's own settings alone.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise missing_extra("matplotlib", "train") from error
    with mpl.rc_context(
        {
            "font.family": "DejaVu Sans",
            "font.size": 10,
            "axes.titlesize": 11,
            "axes.titleweight": "bold",
            "axes.titlelocation": "left",
            "axes.titlepad": 8,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.edgecolor": "#9aa1ac",
            "axes.grid": True,
            "axes.axisbelow": True,
            "grid.color": "#e6e8ec",
            "grid.linewidth": 0.7,
            "xtick.color": "#5b626d",
            "ytick.color": "#5b626d",
            "axes.labelcolor": "#3b414a",
            "lines.markersize": 4,
            "lines.linewidth": 1.6,
            "legend.frameon": False,
            "legend.fontsize": 9.5,
            "savefig.dpi": 150,
            "figure.facecolor": "white",
        }
    ):
        yield


def new_figure(width: float, height: float) -> Any:
    """A figure without pyplot, hence without a window system or global state."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def title(axes: Any, what: str, how: str = "") -> None:
    """Says what was measured in bold, and how in small grey type below."""
    axes.set_title(what, pad=20 if how else 8)
    if how:
        place = {"xytext": (0, 6), "xycoords": "axes fraction", "textcoords": "offset points"}
        axes.annotate(how, (0, 1), fontsize=8.5, color=SOFT, **place)


def step_axis(axes: Any, run: RunRecords) -> None:
    """Training steps from 0 to the last that is planned, with a little air at both ends."""
    axes.set_xlim(-0.02 * run.total_steps, 1.02 * run.total_steps)
    axes.set_xlabel("training step")
    axes.xaxis.get_major_locator().set_params(integer=True)


def rate_axis(axes: Any, label: str) -> None:
    """A rate from 0 to 1, with a little air so that points on the border are whole."""
    axes.set_ylim(-0.03, 1.03)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1.0], ["0", "0.25", "0.5", "0.75", "1"])
    axes.set_ylabel(label)


def rates_across(axes: Any, rows: Sequence[str]) -> None:
    """A rate from 0 to 1 from left to right, and a name for every row."""
    axes.set_yticks(range(len(rows)), rows)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlim(-0.02, 1.02)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1.0], ["0", "0.25", "0.5", "0.75", "1"])
    axes.set_xlabel("success rate")
    axes.grid(visible=False, axis="y")
