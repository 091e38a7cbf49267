"""What two records say of the cells that both have, such as runs that the engine computed in two ways.

    python -m benchmarks.same_cells OLD.json NEW.json --out docs/results/engine_settings

A cell is a starting point, a method and a seed. Both records must have played the same tasks after the same budget of
generated tokens; in which settings they differ stands in the page.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.status import exit_status
from skillc_gym.errors import ConfigError
from skillc_lab.studies import CellResult, ComparisonRecord, area_under_curve, check_cell, read_record
from trainers.stats import MeanEstimate, mean_over_seeds
from trainers.tracking import write_json

__all__ = ["cell_pairs", "main", "page", "same_cells"]

_MEASURES = {"area": "area", "without": "success without the skill", "with": "success with the skill"}


def cell_pairs(old: ComparisonRecord, new: ComparisonRecord) -> list[tuple[CellResult, CellResult]]:
    """The trained cells that both records have, in the new one's order.

    Raises:
        ConfigError: There are none, or the records are of different tasks or budgets.
    """
    known = {(cell.start, cell.method, cell.seed): cell for cell in old.results if cell.curve}
    names = ((cell, (cell.start, cell.method, cell.seed)) for cell in new.results)
    pairs = [(known[name], cell) for cell, name in names if name in known]
    if not pairs:
        raise ConfigError(f"The records {old.title} and {new.title} have no trained cell in common")
    if old.budget != new.budget or any(before.panel_sha256 != after.panel_sha256 for before, after in pairs):
        raise ConfigError(f"{old.title} and {new.title} are of different tasks or budgets: nothing can be compared")
    return pairs


def same_cells(old: ComparisonRecord, new: ComparisonRecord) -> dict[str, Any]:
    """Differences of the common cells, the new record's minus the old one's.

    Returns:
        Each cell's success and area in both, how many tasks came out differently, the mean differences with Student's
        interval over the cells, and the settings that differ.
    """
    cells = [_cell(before, after, old) for before, after in cell_pairs(old, new)]
    means = {
        measure: _json(mean_over_seeds([cell[measure][1] - cell[measure][0] for cell in cells]))
        for measure in _MEASURES
    }
    return {
        "records": [old.title, new.title],
        "revisions": [_revisions(cells, 0), _revisions(cells, 1)],
        "settings": _changed(old.protocol["settings"], new.protocol["settings"]),
        "means": means,
        "cells": cells,
    }


def _cell(before: CellResult, after: CellResult, old: ComparisonRecord) -> dict[str, Any]:
    found = check_cell(after, old)
    return {
        **{name: getattr(after, name) for name in ("start", "method", "seed")},
        "without": [before.without, after.without],
        "with": [before.with_skill, after.with_skill],
        "area": [area_under_curve(cell.curve, old.budget) for cell in (before, after)],
        "tasks": found.tasks,
        "tasks_differing": {"without": found.without, "with": found.with_skill},
        "validations_differing": list(found.validations),
        "revisions": [_revision(before), _revision(after)],
    }


def _revision(cell: CellResult) -> str:
    return str((cell.versions.get("git") or {}).get("revision", "unknown"))


def _revisions(cells: Sequence[Mapping[str, Any]], which: int) -> list[str]:
    return sorted({cell["revisions"][which] for cell in cells})


def _changed(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Settings whose values differ; those that only one of the versions knew count as unset in the other."""
    names = sorted(old.keys() | new.keys())
    return {name: [old.get(name), new.get(name)] for name in names if old.get(name) != new.get(name)}


def _json(mean: MeanEstimate) -> dict[str, Any]:
    return {"mean": mean.mean, "interval": mean.interval.to_json() if mean.interval else None, "cells": mean.n}


def page(found: Mapping[str, Any]) -> str:
    """The differences as a page in Markdown."""
    old, new = found["records"]
    lines = [
        f"# {old} and {new}: the cells that both have",
        "",
        _sentence(found),
        "",
        "| measure | difference |",
        "|---|---|",
        *(f"| {_MEASURES[name]} | {_points(mean)} |" for name, mean in found["means"].items()),
        "",
        f"{_equal(found['cells'])} of the cells are equal in every task and every validation.",
        "",
        "| start | method | seed | without | with | area | tasks that differ, without / with | validations part |",
        "|---" * 8 + "|",
        *(_line(cell) for cell in found["cells"]),
    ]
    return "\n".join(lines) + "\n"


def _sentence(found: Mapping[str, Any]) -> str:
    was, now = (", ".join(revision[:12] for revision in each) for each in found["revisions"])
    settings = found["settings"].items()
    changed = "; ".join(f"`{name}` {_said(before)} -> {_said(after)}" for name, (before, after) in settings)
    return (
        f"{len(found['cells'])} cells of revision {was} and again of {now}; settings that differ: {changed or 'none'}. "
        "Points, the second minus the first, with Student's 95 % interval over cells (cells of one seed share their "
        "draws, so that it is rather too narrow)."
    )


def _said(value: Any) -> str:
    return "unset" if value is None else json.dumps(value)


def _points(mean: Mapping[str, Any]) -> str:
    if mean["interval"] is None:
        return f"{100 * mean['mean']:+.1f}"
    low, high = (100 * bound for bound in mean["interval"])
    return f"{100 * mean['mean']:+.1f} [{low:+.1f}, {high:+.1f}]"


def _line(cell: Mapping[str, Any]) -> str:
    moved = [f"{100 * cell[name][0]:.1f} -> {100 * cell[name][1]:.1f}" for name in ("without", "with", "area")]
    differing = f"{cell['tasks_differing']['without']} / {cell['tasks_differing']['with']} of {cell['tasks']}"
    parted = cell["validations_differing"]
    when = f"at update {parted[0]}" if parted else "never"
    return f"| {cell['start']} | {cell['method']} | {cell['seed']} | {' | '.join(moved)} | {differing} | {when} |"


def _equal(cells: Sequence[Mapping[str, Any]]) -> int:
    return sum(not (any(cell["tasks_differing"].values()) or cell["validations_differing"]) for cell in cells)


def _compare(options: argparse.Namespace) -> None:
    found = same_cells(read_record(options.old), read_record(options.new))
    text = page(found)
    print(text)
    if options.out:
        write_json(options.out.with_suffix(".json"), found)
        options.out.with_suffix(".md").write_text(text, encoding="utf-8")


def main(words: Sequence[str] | None = None) -> int:
    """Prints the page, and writes it with its figures; returns 2 where that was refused."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path, help="record of a study")
    parser.add_argument("new", type=Path, help="record of another one with some of the same cells")
    parser.add_argument("--out", type=Path, help="page and figures, without ending")
    return exit_status(partial(_compare, parser.parse_args(words)))


if __name__ == "__main__":
    sys.exit(main())
