"""What the laboratory's tests share: the trainers' toy, a folder of games, and damaged copies of what commands read."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from skillc_lab.cli.main import main as skillc
from tests.trainers.conftest import toy_folder
from trainers.base import shipped_policy

__all__ = ["toy_folder"]


@pytest.fixture
def says(capsys) -> Callable[..., str]:
    """Runs a command, a line and further words, and checks its status; gives what is wrong at 2, else the output."""

    def run(line: str, *words: object, status: int = 0) -> str:
        capsys.readouterr()
        assert skillc([*line.split(), *map(str, words)]) == status
        said, wrong = capsys.readouterr()
        return wrong if status == 2 else said

    return run


@pytest.fixture(scope="session")
def games(tmp_path_factory) -> Path:
    """Three generated games of each type in every split, in upstream's layout."""
    folder = tmp_path_factory.mktemp("commands") / "games"
    assert skillc(["tools", "make-games", "--out", str(folder), "--games-per-type", "3"]) == 0
    return folder


@pytest.fixture(scope="session")
def damaged(games: Path, tmp_path_factory) -> Path:
    """Things that cannot be used: archives, games, skills and checkpoints."""
    folder = tmp_path_factory.mktemp("damaged")
    (folder / "archive.tar.xz").write_bytes(b"no archive at all")
    (folder / "archive.zip").write_bytes(b"PK\x03\x04cut off")
    (folder / "empty").mkdir()
    for name, content in (("cut", '{"solvable": true, "gram'), ("foreign", '{"solvable": true, "pddl_domain": "x"}')):
        shutil.copytree(games, folder / name)
        for path in (folder / name).rglob("game.tw-pddl"):
            path.write_text(content)
    skill = folder / "skills" / "heat"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("Heat it.\n")
    for name in ("weights", "tokenizer_config"):
        shutil.copytree(shipped_policy(), folder / name)
    (folder / "weights" / "model.safetensors").write_bytes(b"short")
    (folder / "tokenizer_config" / "tokenizer_config.json").write_bytes(b"{")
    return folder
