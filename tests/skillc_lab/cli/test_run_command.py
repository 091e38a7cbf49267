"""How a command ends: its exit status, and one line that says what was wrong."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from skillc_gym.errors import ConfigError, MissingDataError, StorageError
from skillc_lab.cli.command import Command, run_command


@dataclass(frozen=True)
class Nothing:
    """Does what it is told."""

    seed: int = 0
    """A seed."""


def raising(error: BaseException) -> Callable[[Nothing], int]:
    def run(_: Nothing) -> int:
        raise error

    return run


@pytest.mark.parametrize(
    ("error", "status", "says"),
    [
        (ConfigError("No."), 2, "skillc toy: error: No.\n"),
        (MissingDataError("There is no folder x."), 2, "skillc toy: error: There is no folder x.\n"),
        (StorageError("The disk is full."), 1, "skillc toy: error: The disk is full.\n"),
        (OSError(28, "No space left on device"), 1, "No space left on device"),
        (KeyboardInterrupt(), 130, "skillc toy: stopped; go on"),
        (ModuleNotFoundError("No module named 'torch'", name="torch.nn"), 2, "pip install 'skillc-gym[train]'"),
        (ModuleNotFoundError("No module named 'vllm'", name="vllm"), 2, "pip install -e '.[vllm]'"),
        (ModuleNotFoundError("No module named 'en_core_web_sm'", name="en_core_web_sm"), 2, "skillc-gym[spacy]"),
    ],
)
def test_what_goes_wrong_is_one_line_and_a_status(error: BaseException, status: int, says: str, capsys: Any) -> None:
    assert run_command(Command(Nothing, raising(error), "stopped; go on"), [], "skillc toy") == status
    said = capsys.readouterr().err
    assert says in said
    assert len(said.splitlines()) == 1


def test_sigterm_ends_a_command_as_ctrl_c_does(capsys: Any) -> None:
    def killed(_: Nothing) -> int:
        os.kill(os.getpid(), signal.SIGTERM)
        return 0

    before = signal.getsignal(signal.SIGTERM)
    assert run_command(Command(Nothing, killed, "stopped"), [], "skillc toy") == 130
    assert capsys.readouterr().err == "skillc toy: stopped\n"
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_bug_keeps_its_traceback() -> None:
    for error in (KeyError("x"), ModuleNotFoundError("No module named 'trainerz'", name="trainerz")):
        with pytest.raises(type(error)):
            run_command(Command(Nothing, raising(error)), [], "skillc toy")


def test_options_reach_the_command_and_its_status_comes_back(capsys: Any) -> None:
    assert run_command(Command(Nothing, lambda options: options.seed), ["seed=3"], "skillc toy") == 3
    assert run_command(Command(Nothing, lambda options: 1), ["--help"], "skillc toy") == 0
    assert "A seed." in capsys.readouterr().out


@pytest.mark.parametrize("words", ["help", "train --help", "methods"])
@pytest.mark.parametrize("both", [False, True])
def test_a_reader_that_has_gone_ends_it_quietly(words: str, both: bool) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "skillc_lab", *words.split()]
    ended = subprocess.run(command, stdout=writing, stderr=writing if both else subprocess.PIPE, check=False)
    os.close(writing)
    assert (ended.returncode, ended.stderr or b"") == (141, b"")
