"""Runs the notebooks of the documentation from top to bottom and saves what their cells print."""

from __future__ import annotations

import argparse
import contextlib
import copy
import io
import json
from pathlib import Path
from typing import Any

NOTEBOOKS = Path(__file__).resolve().parent.parent / "docs" / "notebooks"


def executed(notebook: dict[str, Any]) -> dict[str, Any]:
    """A copy of a notebook with each cell's number and what it printed; they run in one namespace, in order."""
    result, names = copy.deepcopy(notebook), {"__name__": "__main__"}
    cells = [cell for cell in result["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(cells, start=1):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("".join(cell["source"]), f"cell {number}", "exec"), names)  # the project's own notebook
        lines = printed.getvalue().splitlines(keepends=True)
        cell["execution_count"] = number
        cell["outputs"] = [{"name": "stdout", "output_type": "stream", "text": lines}] if lines else []
    return result


def main() -> None:
    """Runs all notebooks, or those that are named, and writes them back."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("notebooks", nargs="*", type=Path, default=sorted(NOTEBOOKS.glob("*.ipynb")))
    for path in parser.parse_args().notebooks:
        found = executed(json.loads(path.read_text(encoding="utf-8")))
        path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
