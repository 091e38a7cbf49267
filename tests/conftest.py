"""Where tests find real data, and what they do when it is not there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ARCHIVE = ROOT.parent / "shared" / "data" / "alfworld" / "alfworld_games_json_2.1.1.tar.xz"


@pytest.fixture(scope="session")
def alfworld_data() -> Path:
    """A folder or archive of real ALFWorld games; skips the test where there is none."""
    named = os.environ.get("ALFWORLD_DATA")
    for place in [Path(named)] if named else [ARCHIVE]:
        if place.exists():
            return place
    pytest.skip("no ALFWorld games: set ALFWORLD_DATA to the folder or archive that holds json_2.1.1")
