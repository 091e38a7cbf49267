"""From the record of a comparison alone: its table and its pictures."""

from __future__ import annotations

from pathlib import Path

from skillc_lab.studies.curves import draw_curves
from skillc_lab.studies.picture import draw_comparison
from skillc_lab.studies.record import ComparisonRecord
from skillc_lab.studies.regime_map import draw_regime_map
from skillc_lab.studies.regimes import regimes_of
from skillc_lab.studies.table import table_text

__all__ = ["draw_record"]


def draw_record(record: ComparisonRecord, folder: Path) -> list[Path]:
    """Writes ``table.md``, a picture per starting point, the regime map and the learning curves.

    Returns:
        Their paths; none before the baseline has a cell.

    Raises:
        MissingExtraError: Without matplotlib.
    """
    if not record.starts:
        return []
    table = folder / "table.md"
    table.write_text("\n\n".join(_section(record, start) for start in record.starts) + "\n", encoding="utf-8")
    paths = [table]
    for start in record.starts:
        paths.append(folder / (f"{record.title}-{start}.png" if start else f"{record.title}.png"))
        heading = f"Starting point: {start}" if start else ""
        before = record.untrained(start)
        cells = record.cells(start)
        draw_comparison(record.rows(start), cells, record.budget, paths[-1], before=before, heading=heading)
    regimes = regimes_of([record])
    for name, draw in (("map", draw_regime_map), ("curves", draw_curves)):
        paths.append(folder / f"{record.title}-{name}.png")
        draw(regimes, paths[-1])
    return paths


def _section(record: ComparisonRecord, start: str) -> str:
    text = table_text(record.rows(start), record.untrained(start))
    return f"## {start}\n\n{text}" if start else text
