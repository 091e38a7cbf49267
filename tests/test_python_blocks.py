"""A reader copies and pastes: every Python block of README and documentation runs alone, in an empty folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.newcomer import lines_of
from skillc_gym.adapters import ChatEnv
from skillc_lab.cli.main import main as skillc
from tests.openai_server import openai_server

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
"""Those of the adapters run in the adapters' own tests: each needs a library that excludes the others."""
BLOCKS = {
    f"{page.stem}-{number}": block
    for page in PAGES
    for number, block in enumerate(line.text for line in lines_of(page.read_text("utf-8")) if line.python)
}
SAYS = {
    "README-0": "with [True, True] without [False, False]\n" * 2,
    "any-model-0": "gap",
    "ten-minutes-0": "with the skill [True, True]\nwithout        [False, False]\n",
    "training-0": "runs/mine/policy 1 True\n",
}
"""What a block prints, where the text beside it promises that."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * name.startswith("training")) for name in BLOCKS]
)
def test_a_block_runs_alone(name: str, tmp_path: Path) -> None:
    if re.search(r"^from trainers\.(training|evaluation)", BLOCKS[name], re.MULTILINE):
        pytest.importorskip("trl", reason="needs the train extra")
    (tmp_path / "pasted.py").write_text(BLOCKS[name], encoding="utf-8")
    with openai_server(lambda messages: "<think>Anything?</think><action>look</action>") as server:
        named = {"PYTHONPATH": str(ROOT), "OPENAI_API_KEY": "none", "OPENAI_BASE_URL": server.base_url}
        done = subprocess.run(
            [sys.executable, "pasted.py"],
            cwd=tmp_path,
            env={**os.environ, **named},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-2000:]
    assert SAYS.get(name, "") in done.stdout


def test_the_newcomers_own_skill_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """The light commands of the ten minutes' page, after its Python and in the same folder."""
    monkeypatch.chdir(tmp_path)
    exec(compile(BLOCKS["ten-minutes-1"], "ten-minutes.md", "exec"), {"__name__": "newcomer"})
    assert skillc(["skills", "check", "my_skills", "--env", "coins", "--shows", "hard"]) == 0
    assert "From a room with one exit go back." in capsys.readouterr().out
    monkeypatch.setattr("builtins.input", lambda _="": ":quit")
    assert skillc(["play", "--env", "coins", "--library", "my_skills", "--skill"]) == 0
    assert "From a room with one exit go back." in capsys.readouterr().out
    env = ChatEnv("coins", library="my_skills")
    assert "Take the coin when you see it." in env.reset(env.task_ids[0], condition=1)[0]["content"]
