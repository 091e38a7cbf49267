"""The training page's Python, run as it stands but for the number and size of its updates."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("trl", reason="needs the train extra")

ROOT = Path(__file__).resolve().parents[2]
SMALL = "steps=1, tasks_per_step=2, group_size=2, panel_per_type=1, max_episode_steps=3, max_reply_tokens=12"


@pytest.mark.slow
def test_the_training_page_trains(tmp_path, monkeypatch, capsys):
    page = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    (tmp_path / "trainers").symlink_to(ROOT / "trainers")
    monkeypatch.chdir(tmp_path)
    exec(compile(block.replace("steps=40", SMALL).replace("50", "4"), "training.md", "exec"), {"__name__": "training"})
    assert "runs/mine/policy 1 True" in capsys.readouterr().out
    assert (tmp_path / "runs" / "mine" / "policy" / "model.safetensors").exists()
