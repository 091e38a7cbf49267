"""The method's page: its Python runs as it stands, on a few episodes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tests.trainers.rollouts_of import episode

PAGE = Path(__file__).resolve().parents[3] / "docs" / "method.md"


def test_an_update_in_six_lines():
    (block,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    played = [episode(won=won, condition=skill) for won, skill in ((True, 1), (True, 1), (True, 0), (False, 0))]
    names: dict[str, Any] = {
        "task_types": ("heat", "cool"),
        "task_type": "heat",
        "episodes": played,
        "sr_with": {"heat": 0.9, "cool": 0.9},
        "sr_without": {"heat": 0.1, "cool": 0.9},
    }
    exec(compile(block, PAGE.name, "exec"), names)
    assert names["recipe"].overrides
    assert 0 < names["n_plus"] < 8
    assert names["advantages"].values.shape == (4,)
    other = names["Method"](names["recipe"], names["task_types"], total_steps=180)
    other.load_state_dict(names["saved"])
    assert other.state_dict() == names["saved"]
