"""The table of agents without training is its record's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.agents_table import agents_table, main

RECORD = Path("docs/results/agents.json")


def evaluation(folder: Path, agent: str, *, env: str = "alfworld", trials: dict[str, Any] | None = None) -> Path:
    """Writes what an evaluation of four tasks leaves: three solved with the skill, one without."""
    folder.mkdir()
    report = {"agent": agent, "overall": {"n": 4, "sr_with": 0.75, "sr_without": 0.25}}
    files = {"report": report, "config": {"env": env}, "versions": {"git": {"revision": "a" * 40, "changed": False}}}
    for name, values in {**files, **({"trials": trials} if trials else {})}.items():
        (folder / f"{name}.json").write_text(json.dumps(values))
    return folder


def test_the_page_of_methods_shows_what_the_record_says() -> None:
    assert agents_table(json.loads(RECORD.read_text())) in Path("docs/methods.md").read_text()


def test_tasks_solved_stand_by_agent_and_world(tmp_path: Path) -> None:
    page, out = tmp_path / "page.md", tmp_path / "agents.json"
    page.write_text("<!-- agents:start -->\n<!-- agents:end -->\n")
    again = {"trials": 3, "with": [{"solved": 3}, {"solved": 4}], "without": [{"solved": 1}, {"solved": 2}]}
    folders = [
        evaluation(tmp_path / "a", "react"),
        evaluation(tmp_path / "b", "reflexion", trials=again),
        evaluation(tmp_path / "c", "react", env="webshop"),
    ]
    assert main([*map(str, folders), "--out", str(out), "--page", str(page)]) == 0
    assert "| solved with the skill / without | react | reflexion, 3 tries |" in page.read_text()
    assert "| 4 tasks (`alfworld`) | 3 / 1 | 4 / 2 |" in page.read_text()
    assert "| 4 tasks (`webshop`) | 3 / 1 | not run |" in page.read_text()
    assert json.loads(out.read_text())["revision"] == {"revisions": ["a" * 40], "clean": True}


def test_a_folder_without_an_evaluation_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path), "--out", str(tmp_path / "x.json"), "--page", str(tmp_path / "page.md")]) == 2
    assert "holds no evaluation" in capsys.readouterr().err
