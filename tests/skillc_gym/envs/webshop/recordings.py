"""Reading recordings: JSON lines, plain or ``.xz``."""

from __future__ import annotations

import json
import lzma


def read_lines(path):
    """Returns the rows of a file; texts with raw line ends in them were split when recorded and are left out."""
    data = lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()
    rows, broken = [], 0
    for line in data.decode("utf-8").split("\n"):
        try:
            rows.append(json.loads(line))
        except ValueError:
            broken += bool(line.strip())
    assert broken <= 6
    return rows
