"""The script is the command ``skillc train``, from any folder and without an installation."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "train.py"


def test_it_runs_from_elsewhere(tmp_path):
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    words = [sys.executable, str(SCRIPT), "model=shipped", "steps=0"]
    done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("skillc train: error: steps")
