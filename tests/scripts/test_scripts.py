"""Scripts of a checkout: ``skillc train`` without an installation, the course with SmolLM2, the newcomer's walk."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.newcomer import PAGES, ROOT, Line, Newcomer, lines_of
from skillc_lab.cli.main import find_command, split_command
from skillc_lab.cli.options import parse
from trainers.engines import check_engine

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


def test_training_runs_from_elsewhere(tmp_path: Path):
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    words = [sys.executable, str(SCRIPTS / "train.py"), "model=shipped", "steps=0"]
    done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("skillc train: error: steps")


def test_the_nights_commands_are_understood(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs the train extra")
    stand_in = tmp_path / "skillc"
    stand_in.write_text('#!/bin/bash\nprintf "%s\\037" "$@" >> said\necho >> said\n')
    stand_in.chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "JOBS": "1"}
    subprocess.run(["bash", str(SCRIPTS / "smollm2" / "night.sh"), "out"], cwd=tmp_path, env=env, check=True)
    said = [line.split("\x1f")[:-1] for line in (tmp_path / "said").read_text().splitlines()]
    commands = [(name.split()[-1], name, words) for name, words in map(split_command, said)]
    assert [last for last, *_ in commands] == ["get-model", "make-policy", "evaluate", *["train", "evaluate"] * 9]
    made = {last: parse(find_command(name).options, words, f"skillc {name}") for last, name, words in commands}
    recipe = made["make-policy"].recipe()
    assert recipe.demonstrations.env_kwargs["task_types"] == ("heat", "cool", "clean")
    assert set(recipe.demonstrations.error_rates_without_skill.values()) == {1.0}
    config = made["train"].config()
    assert (config.engine, config.trained_layers, config.precision) == ("choosing", "upper:15", "bfloat16_copy")
    check_engine(config.engine, config.engine_options)


def test_the_newcomer_types_every_line_of_the_pages():
    page = "```bash\nskillc a \\\n    b=1\n\nmake quick  # a minute\n```\n```python\nx = 1\n```\n```text\nno\n```"
    assert list(lines_of(page)) == [Line("skillc a b=1"), Line("make quick"), Line("x = 1\n", python=True)]
    typed = [line.text for name in PAGES for line in lines_of((ROOT / name).read_text(encoding="utf-8"))]
    assert {"make quick", "scripts/install_torch.sh python", "skillc doctor"} <= set(typed)


def test_the_newcomer_has_a_home_of_its_own_and_tells_what_failed(tmp_path: Path):
    newcomer = Newcomer(tmp_path / "new")
    newcomer.settle()
    lines = [Line('test $HOME -ef ../home && test ! -e .venv && test -z "$PYTHONPATH"'), Line("echo why; false")]
    for line in lines:
        newcomer.type(line)
    assert [line.failed for line in lines] == ["", "status 1\nwhy\n"]
    assert (
        Line("make quick").transcript_at_work()
        > 60
        > Line("make quick", seconds=90, work=9, transcript=80).transcript_at_work()
    )
    assert not newcomer.left_out(Line("make demo"))
    assert Newcomer(tmp_path, venv=tmp_path, short=True).left_out(Line("make demo"))
