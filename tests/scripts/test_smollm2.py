"""The course with SmolLM2: its commands, as the shell writes them, are understood."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs the train extra")

from skillc_lab.cli.main import find_command, split_command
from skillc_lab.cli.options import parse

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "smollm2" / "run.sh"


def test_the_courses_commands_are_understood(tmp_path: Path) -> None:
    stand_in = tmp_path / "skillc"
    stand_in.write_text('#!/bin/bash\nprintf "%s\\037" "$@" >> said\necho >> said\n')
    stand_in.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    subprocess.run(["bash", str(SCRIPT), "out"], cwd=tmp_path, env={**os.environ, "PATH": path}, check=True)
    said = [line.split("\x1f")[:-1] for line in (tmp_path / "said").read_text().splitlines()]
    commands = [split_command(words) for words in said]
    assert [name.split()[-1] for name, _ in commands] == [
        *("get-model", "make-policy", "evaluate", "train", "evaluate", "report")
    ]
    made = {}
    for name, words in commands:
        made[name.split()[-1]] = parse(find_command(name).options, words, f"skillc {name}")
    assert made["make-policy"].recipe().cloning.batches == 60
    config = made["train"].config()
    assert config.env_kwargs["generator"]["size"] == "small"
    assert config.chat_options == {"role": "household agent"}
