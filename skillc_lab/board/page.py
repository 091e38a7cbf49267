"""The board as tables, as a part of a page, and as badges."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from skillc_gym.errors import ConfigError
from skillc_gym.files import replace_file
from skillc_lab.board.panels import PANELS, BoardPanel
from skillc_lab.board.result import BoardResult
from skillc_lab.tables import Row, Table, mean_tokens, points, rate
from trainers.stats import Interval

START, END = "<!-- board:start -->", "<!-- board:end -->"
_ARXIV = re.compile(r"^(\d{4}\.\d{5})")
_NEW = f"# Board\n\n{START}\n{END}\n"


def board_tables(results: Sequence[BoardResult], place: str = "") -> dict[str, Table]:
    """A table for every panel, the best first, then papers' figures; links lead to files in ``place``, if any."""
    return {name: _table(name, panel, results, place) for name, panel in PANELS.items()}


def _table(name: str, panel: BoardPanel, results: Sequence[BoardResult], place: str) -> Table:
    own = [each for each in results if each.panel == name]
    own.sort(key=lambda each: (-each.report.overall.sr_without, each.about["name"]))
    told = list(_published(panel, linked=bool(place)))
    rows = [*(_row(each, place) for each in own), *told]
    # A column that is empty all the way down, such as the score of a world without scores, is left out.
    kept = [at for at, column in enumerate(COLUMNS) if column.always or any(row[at] for row in rows)]
    numbers = [place for place, at in enumerate(kept) if COLUMNS[at].number]
    return Table([COLUMNS[at].name for at in kept], [[row[at] for at in kept] for row in rows], numbers)


def _row(result: BoardResult, place: str) -> Row:
    title, *others = (column.show(result) for column in COLUMNS)
    return [f"[{title}]({place}/{result.file_name}.json)" if place else title, *others]


def _title(result: BoardResult) -> str:
    return str(result.about["name"]) + (f" ({'; '.join(result.notes)})" if result.notes else "")


def _overall(result: BoardResult, name: str) -> tuple[float, Interval]:
    counts = result.report.overall
    return getattr(counts, name), getattr(counts, f"{name}_interval")


def _well_formed(result: BoardResult) -> str:
    actions = result.report.actions()
    shares = [actions[arm]["well_formed"] for arm in _ARMS]
    return _both(None if share is None else 100 * share for share in shares)


def _score(result: BoardResult) -> str:
    scores = result.report.to_json()["scores"]
    return _both(100 * scores["all"][arm]["mean"] if scores else None for arm in _ARMS)


def _tokens(result: BoardResult) -> str:
    return _both(mean_tokens(result.report.outcomes, arm == "with") for arm in _ARMS)


_ARMS = ("without", "with")


def _both(values: Iterable[float | None]) -> str:
    """A figure without skills and with them; "" where it is unknown."""
    found = list(values)
    return "" if None in found else " / ".join(f"{value:,.0f}" for value in found)


class BoardColumn(NamedTuple):
    """One column: its head, and what it says of a result."""

    name: str
    show: Callable[[BoardResult], str | None]
    number: bool = True
    always: bool = False
    """Also where it is empty all the way down."""
    published: str = ""
    """What of a paper's figure it says: its ``name``, ``figure`` or ``source``."""


COLUMNS: tuple[BoardColumn, ...] = (
    BoardColumn("model", _title, number=False, always=True, published="name"),
    BoardColumn("revision", lambda result: result.version, number=False, always=True),
    BoardColumn("without skills", lambda result: rate(*_overall(result, "sr_without")), always=True),
    BoardColumn("with skills", lambda result: rate(*_overall(result, "sr_with")), always=True),
    BoardColumn("difference", lambda result: points(*_overall(result, "gap")), always=True),
    BoardColumn("well-formed", _well_formed),
    BoardColumn("score", _score),
    BoardColumn("tokens", _tokens),
    BoardColumn("reported", lambda result: None, published="figure"),
    BoardColumn("source", lambda result: None, number=False, published="source"),
)


def _published(panel: BoardPanel, *, linked: bool) -> Iterator[Row]:
    """What papers report, for the rows that are not filled yet; their columns are named in the file."""
    text = resources.files("skillc_lab.board").joinpath("published.csv").read_text(encoding="utf-8")
    for each in csv.DictReader(text.splitlines()):
        if figure := each.get(panel.published):
            source = _ARXIV.sub(r"[\1](https://arxiv.org/abs/\1)", each["source"]) if linked else each["source"]
            told = {"name": f"{each['model']}, {each['method']}", "source": source}
            told["figure"] = figure + " with skills" * (each["skills"] == "yes")
            yield [told.get(column.published) for column in COLUMNS]


def renewed_page(text: str, results: Sequence[BoardResult], place: str) -> str:
    """A page with the tables between its marks made again, where files lie in ``place``; an empty text becomes a page.

    Raises:
        ConfigError: The page has no marks.
    """
    before, start, rest = (text or _NEW).partition(START)
    _, end, after = rest.partition(END)
    if not start or not end:
        raise ConfigError(f"The page has no lines {START} and {END}, between which the tables stand; add them")
    tables = board_tables(results, place)
    made = "\n\n".join(
        f"## {panel.title}\n\n{panel.tasks} tasks, {panel.steps} steps: {panel.data}. Hash `{panel.sha256[:12]}`.\n\n"
        f"```bash\n{panel.command()}\n```\n\n{tables[name].markdown()}"
        for name, panel in PANELS.items()
    )
    return f"{before}{START}\n\n{made}\n\n{END}{after}"


def write_badge(path: Path, result: BoardResult) -> None:
    """Writes a picture of one line: the panel, and success without skills."""
    label = PANELS[result.panel].title
    value = "; ".join([f"{100 * result.report.overall.sr_without:.1f} % without skills", *result.notes])
    left, right = (7 * len(text) + 12 for text in (label, value))
    texts = "".join(
        f'<text x="{x}" y="14" text-anchor="middle">{escape(text)}</text>'
        for x, text in ((left / 2, label), (left + right / 2, value))
    )
    badge = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" '
        f'aria-label="{escape(label)}: {escape(value)}">'
        f'<rect width="{left}" height="20" fill="#555"/>'
        f'<rect x="{left}" width="{right}" height="20" fill="#2a6f97"/>'
        f'<g fill="#fff" font-family="Verdana,sans-serif" font-size="11">{texts}</g></svg>\n'
    )
    replace_file(path, [badge.encode()])
