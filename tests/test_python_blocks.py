"""A reader copies and pastes: every Python block of README and documentation runs alone, in an empty folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.openai_server import openai_server

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
"""Those of the adapters run in the adapters' own tests: each needs a library that excludes the others."""
BLOCKS = {
    f"{page.stem}-{number}": block
    for page in PAGES
    for number, block in enumerate(re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.M))
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
