"""Games are measured by the generator's knobs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import games


def test_difficulty_is_recorded_and_a_knob_that_does_nothing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(games, "KNOBS", {"hidden": (0.0, 1.0), "receptacles": (6, 6)})
    out = tmp_path / "found.json"
    assert games.main(["--games", "24", "--out", str(out), "--allow-changes"]) == 1
    found = json.loads(out.read_text())
    assert found["stuck"] == ["receptacles"]
    first, second = found["knobs"]["hidden"]
    assert first["explorer"] < second["explorer"]
