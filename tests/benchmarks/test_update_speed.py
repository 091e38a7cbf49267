"""Updates of two checkouts are compared per generated token."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.update_speed import compare, page, turn
from skillc_gym.errors import ConfigError


def update(tokens: float, playing: float, learning: float) -> dict[str, float]:
    return {"tokens": tokens, "playing": playing, "learning": learning, "loss": 0.0}


def test_seconds_are_compared_per_generated_token() -> None:
    record = compare([update(1000, 1, 2), update(2000, 4, 2)], [update(1000, 2, 2), update(1000, 4, 4)])
    assert record["ratios"] == {"playing": [2.0, 2.0], "learning": [1.0, 4.0], "both": [1.333, 2.667]}
    assert (record["own"]["both"], record["peer"]["learning"], record["same_tokens"]) == (3.0, 3.0, 1)
    names = {"own": "ours", "peer": "theirs"}
    assert "| ours | 1.500 | 1.500 | 3.000 |" in page({**record, "preset": "grpo", "names": names})


def test_a_run_that_fails_is_refused_with_what_it_said(tmp_path: Path) -> None:
    (tmp_path / "falls.py").write_text("raise SystemExit('fell over')")
    with pytest.raises(ConfigError, match="fell over"):
        turn(tmp_path, "falls.py", ["steps=1"])
