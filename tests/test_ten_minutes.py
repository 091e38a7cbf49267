"""The newcomer's walk: its Python as it stands, and its light commands after it, in an empty folder."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from skillc_gym.adapters import ChatEnv
from skillc_lab.cli.main import main as skillc

PAGE = Path(__file__).resolve().parent.parent / "docs" / "ten-minutes.md"
_, SKILL = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def test_the_own_skill_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.chdir(tmp_path)
    exec(compile(SKILL, "ten-minutes.md", "exec"), {"__name__": "newcomer"})
    assert skillc(["skills", "check", "my_skills", "--env", "coins", "--shows", "hard"]) == 0
    assert "From a room with one exit go back." in capsys.readouterr().out
    monkeypatch.setattr("builtins.input", lambda _="": ":quit")
    assert skillc(["play", "--env", "coins", "--library", "my_skills", "--skill"]) == 0
    assert "From a room with one exit go back." in capsys.readouterr().out
    env = ChatEnv("coins", library="my_skills")
    assert "Take the coin when you see it." in env.reset(env.task_ids[0], condition=1)[0]["content"]
