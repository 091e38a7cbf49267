"""The live display on a terminal: where the run stands, at a glance."""

from __future__ import annotations

from collections import deque
from typing import IO, Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from skillc_gym.envs.registry import short_type
from trainers.tracking.progress import Clock, Progress, Record, tokens_per_second

_BLOCKS = " ▁▂▃▄▅▆▇█"
_WIDTH = 24


class LiveProgress(Progress):
    """Redraws one panel in place; notes scroll by above it."""

    def __init__(self, stream: IO[str]) -> None:
        self.console = Console(file=stream)
        self._title = ""
        self._step = self._steps = 0
        self._phase = ("starting", 0, 0)
        self._train: Record = {}
        self._validation: Record = {}
        self._success: dict[str, deque[float | None]] = {arm: deque(maxlen=_WIDTH) for arm in ("with", "without")}
        self._clock = Clock()
        self._live = Live(console=self.console, refresh_per_second=4, transient=False, get_renderable=self._render)

    def start(self, title: str, step: int, steps: int) -> None:
        """Opens the panel."""
        self._title, self._step, self._steps = title, step, steps
        self._clock.start(step)
        self._live.start()

    def phase(self, name: str, done: int, total: int) -> None:
        """Moves the inner bar."""
        self._phase = (name, done, total)

    def record(self, record: Record) -> None:
        """Takes in the newest figures."""
        self._step = int(record["step"])
        if record["event"] == "validation":
            self._validation = record
            return
        self._train = record
        for arm, series in self._success.items():
            series.append(record[f"success_{arm}"])

    def note(self, text: str) -> None:
        """Prints a line above the panel."""
        self.console.print(Text(text, style="dim"))

    def close(self) -> None:
        """Leaves the last state of the panel on the screen."""
        self._live.stop()

    def _render(self) -> Panel:
        parts: list[RenderableType] = [self._bars(), self._rates()]
        if self._validation:
            parts += [Text(""), self._types()]
        if self._train:
            parts += [Text(""), self._figures()]
        return Panel(Group(*parts), title=self._title, title_align="left", border_style="cyan")

    def _bars(self) -> Table:
        name, done, total = self._phase
        left = self._clock.left(self._step, self._steps)
        grid = Table.grid(padding=(0, 1))
        where = f"{self._step}/{self._steps}  {left} left"
        grid.add_row("step", ProgressBar(self._steps or 1, self._step, width=40), where)
        grid.add_row(name, ProgressBar(total or 1, done, width=40), f"{done}/{total}")
        return grid

    def _rates(self) -> Table:
        grid = Table.grid(padding=(0, 1))
        looks = (("with skills", "green"), ("without", "yellow"))
        for (label, style), series in zip(looks, self._success.values(), strict=True):
            last = next((value for value in reversed(series) if value is not None), None)
            grid.add_row(label, Text(sparkline(series), style=style), Text(_percent(last), style=f"bold {style}"))
        return grid

    def _types(self) -> Table:
        title = f"validation at step {self._validation['step']}"
        table = Table(box=None, padding=(0, 1), title=title, title_justify="left")
        for column in ("type", "with", "without", "smoothed gap", "", "n+", ""):
            table.add_column(column, justify="right" if column in ("with", "without", "n+") else "left")
        active, n_plus = set(self._validation["active"]), self._train.get("n_plus", {})
        for kind, rate in self._validation["sr_with"].items():
            gap = self._validation["gap_smoothed"][kind]
            state = Text("active", style="green") if kind in active else Text("retired", style="dim")
            members = n_plus.get(kind)
            table.add_row(
                short_type(kind),
                _percent(rate),
                _percent(self._validation["sr_without"][kind]),
                gap_bar(gap),
                f"{gap:+.2f}",
                "" if members is None else f"{members:.0f}",
                state,
            )
        table.add_row("all", _percent(self._validation["overall_with"]), _percent(self._validation["overall_without"]))
        return table

    def _figures(self) -> Text:
        record = self._train
        norm = record.get("grad_norm")
        pieces = [
            f"loss {record['loss']:+.3f}",
            f"gradient {norm:.2f}" if norm is not None else "",
            f"kl {record['kl']:.4f}" if record.get("kl") is not None else "",
            f"turns {record['episode_length']:.1f}",
            f"well-formed {_percent(record['format_valid'])}",
            f"{tokens_per_second(record):,.0f} tokens/s",
            f"cut by the context {_percent(record['cut_by_context'])}" if record.get("cut_by_context") else "",
        ]
        return Text("   ".join(piece for piece in pieces if piece), style="dim")


def sparkline(series: Any) -> str:
    """Rates in [0, 1] as a row of blocks; a dot where there is none."""
    return "".join("·" if value is None else _BLOCKS[round(value * 8)] for value in series).ljust(_WIDTH)


def gap_bar(gap: float, half: int = 8) -> Text:
    """A gap in [-1, 1] as a bar that grows from the middle."""
    length = min(half, round(abs(gap) * half))
    left = ("█" * length).rjust(half) if gap < 0 else " " * half
    right = ("█" * length).ljust(half) if gap >= 0 else " " * half
    return Text.assemble((left, "red"), ("│", "dim"), (right, "blue"))


def _percent(rate: float | None) -> str:
    return "--" if rate is None else f"{100 * rate:.0f}%"
