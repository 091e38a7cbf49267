"""The look of every picture: one colour for each method and each task type, and the furniture that plots share."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from textwrap import wrap
from typing import Any
from zlib import crc32

from skillc_gym.envs.registry import short_type
from skillc_gym.errors import needs_extra
from skillc_gym.files import replace_file

COLUMN = 4.2
"""Width in inches of a figure that a telephone shows legibly."""
SOFT = "#5b626d"
"""Colour of explanations."""

WITH: dict[str, Any] = {"color": "#8a8f98", "marker": "s", "linestyle": (0, (4, 1.5)), "label": "with the skill"}
WITHOUT: dict[str, Any] = {"color": "#111418", "marker": "o", "linestyle": "-", "label": "without the skill"}

# Okabe and Ito's palette without black and yellow, which stand for conditions and vanish on white.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
_MARKERS = ("o", "s", "^", "D", "v", "P")
_DASHES: tuple[Any, ...] = ("-", (0, (4, 1.5)), (0, (1, 1.2)), (0, (6, 1.5, 1, 1.5)))

_MOST_DRAWN = ("guarded_imitation", "grpo", "skillc", "contrastive_relabelling", "half_skill_grpo", "skill_grpo")
METHOD_COLOURS: Mapping[str, str] = {
    **dict(zip(_MOST_DRAWN, _COLOURS, strict=True)),
    "skill0": "#882255",
    "sdar": "#999933",
    "context_distillation": "#332288",
    "opsd_jsd": "#44AA99",
}
"""Colours of the methods that are drawn together most; colour-blind readers tell them apart."""
_FURTHER = ("#AA4499", "#661100", "#6699CC", "#117733", "#888888", "#B8860B", "#44559A", "#A0522D")
"""One of these for any other method, by its name."""
_STARTS = ("#111418", "#8a8f98", "#6b8e23", "#a0206b")
"""Colours of starting points."""
_SPELLING: Mapping[str, str] = {
    **{name: name.upper() for name in ("grpo", "opsd", "sdar", "ppo", "opid", "raft", "rloo", "rlsd", "sd", "jsd")},
    **{"skillc": "SkillC", "gigpo": "GiGPO", "skillrl": "SkillRL", "retroagent": "RetroAgent", "d2skill": "D2Skill"},
    **{"skill0": "Skill0", "skill05": "Skill0.5", "skill1": "Skill1", "evolver": "EvolveR"},
}

_LOOK: Mapping[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "text.parse_math": False,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#9aa1ac",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e6e8ec",
    "grid.linewidth": 0.7,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "axes.labelcolor": "#3b414a",
    "lines.markersize": 4,
    "lines.linewidth": 1.6,
    "legend.frameon": False,
    "legend.fontsize": 9.5,
    "savefig.dpi": 180,
    "figure.facecolor": "white",
}


@dataclass(frozen=True)
class LineStyle:
    """How one method or task type is drawn, the same in every figure."""

    label: str
    colour: str
    marker: str
    linestyle: Any

    @property
    def look(self) -> dict[str, Any]:
        """What matplotlib's ``plot`` is told of it."""
        return {"color": self.colour, "marker": self.marker, "linestyle": self.linestyle}


def type_styles(task_types: Sequence[str]) -> dict[str, LineStyle]:
    """One style per type, by its place in the fixed order; more than six types differ by their dashes too."""
    return {
        kind: LineStyle(short_type(kind), _COLOURS[i % 6], _MARKERS[i % 6], _DASHES[i // 6 % len(_DASHES)])
        for i, kind in enumerate(task_types)
    }


def method_styles(labels: Sequence[str]) -> dict[str, LineStyle]:
    """One style per method: a colour that is the method's in every picture, dashes for variants of one method.

    Labels are as tables have them: ``grpo``, ``skillc:omega=0.2``, ``skillc+baseline``, ``grpo.lr0.001``.
    """
    drawn: Counter[str] = Counter()
    styles = {}
    for label in labels:
        base = _base(label)
        colour = METHOD_COLOURS.get(base) or _FURTHER[crc32(base.encode()) % len(_FURTHER)]
        place = [*METHOD_COLOURS.values(), *_FURTHER].index(colour) + drawn[colour]
        look = _MARKERS[place % len(_MARKERS)], _DASHES[drawn[colour] % len(_DASHES)]
        styles[label] = LineStyle(method_words(label), colour, *look)
        drawn[colour] += 1
    return styles


def start_styles(names: Sequence[str]) -> dict[str, LineStyle]:
    """One style per starting point, in colours that are no method's."""
    return {name: LineStyle(name, _STARTS[i % 4], _MARKERS[i % 6], "-") for i, name in enumerate(names)}


def method_words(label: str) -> str:
    """A method's name as a sentence has it: ``contrastive relabelling``, ``half skill GRPO + gate``."""
    base = _base(label)
    more = re.sub(r"\+(\w+)", lambda found: f" + {found[1].replace('_', ' ')}", label[len(base) :])
    return " ".join(_SPELLING.get(word, word) for word in base.split("_")) + more


def _base(label: str) -> str:
    found = re.match(r"\w+", label)
    return found[0] if found else label


@contextmanager
def canvas(path: Path, width: float, height: float, said: str = "") -> Iterator[Any]:
    """A figure in the project's look, without pyplot, hence without global state; written once the drawing is done.

    Args:
        path: The PNG file; what lies in its place is replaced, and a link is not followed.
        width: In inches.
        height: In inches.
        said: A headline over all of its plots.
    """
    with needs_extra("matplotlib", "report"):
        import matplotlib as mpl
        from matplotlib.figure import Figure
    with mpl.rc_context(dict(_LOOK)):
        figure, picture = Figure(figsize=(width, height), layout="constrained"), BytesIO()
        if said:
            size, letters = (11, 10.5) if width <= COLUMN else (12.5, 9.5)  # letters of this size an inch
            lines = wrap(said, int(letters * width))
            figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize=size, weight="bold")
        yield figure
        figure.savefig(picture, format="png")
        replace_file(path, [picture.getvalue()])


def title(axes: Any, what: str, how: str = "", beside: float = 0.0) -> None:
    """Says in bold what the plot shows, and in small grey type below how it was measured; both are wrapped.

    ``beside``: inches of the figure's width that names beside its plots take.
    """
    spec = axes.get_subplotspec()
    grid = spec.get_gridspec()
    shares = grid.get_width_ratios()
    width = (axes.figure.get_figwidth() - beside) * sum(shares[i] for i in spec.colspan) / sum(shares) - 0.6
    bold, small = (int(each * max(width, 1.2)) for each in (11.3, 15.5))
    what, how = (words.replace(" %", "\N{NO-BREAK SPACE}%") for words in (what, how))
    explained = wrap(how, small, break_long_words=False)
    axes.set_title("\n".join(wrap(what, bold, break_long_words=False)), pad=8 + 12 * len(explained))
    if explained:
        place = {"xytext": (0, 6), "xycoords": "axes fraction", "textcoords": "offset points"}
        axes.annotate("\n".join(explained), (0, 1), fontsize=8.5, color=SOFT, **place)


def shared_legend(figure: Any, columns: int) -> None:
    """One legend below all plots of a figure: every label once, in as many columns as have room, at most these."""
    found = [axes.get_legend_handles_labels() for axes in figure.axes]
    lines = {label: line for lines, labels in found for line, label in zip(lines, labels, strict=True)}
    if lines:
        fitting = int(figure.get_figwidth() / (0.5 + 0.07 * max(map(len, lines))))
        figure.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=max(1, min(columns, fitting)))


def step_axis(axes: Any, total_steps: int) -> None:
    """Training steps from 0 to the last that is planned, with a little air at both ends."""
    axes.set_xlim(-0.02 * total_steps, 1.02 * total_steps)
    axes.set_xlabel("training step")
    axes.xaxis.get_major_locator().set_params(integer=True)


def rate_axis(axes: Any, label: str = "success in %") -> None:
    """A rate from 0 to 1 in per cent, with a little air so that points on the border are whole."""
    axes.set_ylim(-0.03, 1.03)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1.0], ["0", "25", "50", "75", "100"])
    axes.set_ylabel(label)


def rates_across(axes: Any, rows: Sequence[str]) -> None:
    """A rate from 0 to 1 in per cent from left to right, and a name for every row."""
    axes.set_yticks(range(len(rows)), rows)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlim(-0.02, 1.02)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1.0], ["0", "25", "50", "75", "100"])
    axes.set_xlabel("success in %")
    axes.grid(visible=False, axis="y")
