"""A newcomer copies and pastes: every shell line of the README is run (`test_python_blocks` has the Python).

Shell lines that train or evaluate are run with a few more words at their end (a later word wins), so that one update is
made instead of forty; ``make`` lines are checked to name targets that exist.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from skillc_lab.cli.main import main as skillc

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
SHORT = {
    "train": "steps=1 tasks_per_step=2 group_size=2 panel_per_type=1 max_episode_steps=4",
    "evaluate": "per_type=1 max_episode_steps=4",
}


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


def shell_lines() -> list[str]:
    return [line for block in blocks("bash") for line in block.replace("\\\n", " ").splitlines() if line.strip()]


def test_every_block_is_of_a_language_that_is_run():
    assert set(re.findall(r"^```(\w+)$", README, re.MULTILINE)) == {"bash", "python"}


def test_make_lines_name_targets():
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    lines = [line for line in shell_lines() if line.startswith("make ")]
    assert lines == ["make quick", "make demo", "make test"]
    assert {line.split()[1] for line in lines} <= set(targets)


@pytest.mark.slow
def test_shell_lines_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("trl", reason="needs the train extra")
    monkeypatch.chdir(tmp_path)
    lines = [line for line in shell_lines() if not line.startswith(("make ", ". .venv"))]
    assert lines
    for line in lines:
        program, name, *words = shlex.split(line)
        assert program == "skillc"
        assert skillc([name, *words, *SHORT.get(name, "").split()]) == 0, line
    assert (tmp_path / "runs/mine/after/report.json").exists()
    assert (tmp_path / "runs/mine/report/index.html").exists()


def test_every_link_leads_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert target.startswith("https://") or (ROOT / target).exists(), target
