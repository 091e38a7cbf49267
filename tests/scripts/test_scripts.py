"""The scripts are the commands: each calls the one of its name, from any folder and without an installation."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from skillc_lab.cli.main import command_names

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


NAMES = sorted(path.stem.replace("_", "-") for path in SCRIPTS.glob("[a-z]*.py"))


def test_the_long_known_ones_are_there():
    assert {"train", "evaluate", "demo", "play", "make-policy", "make-games"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_it_calls_the_command_of_its_name(name):
    text = (SCRIPTS / f"{name.replace('-', '_')}.py").read_text(encoding="utf-8")
    assert name in command_names()
    assert f'main(["{name}", *sys.argv[1:]])' in text
    assert len(text.splitlines()) < 15


def test_it_runs_from_elsewhere(tmp_path):
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    words = [sys.executable, str(SCRIPTS / "make_games.py"), "--out", "games", "games_per_type=0"]
    done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("skillc make-games: error: The generator's games_per_type")
