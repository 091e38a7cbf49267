"""``skillc tools fan-out``: run a file of commands on the machines of a Ray cluster."""

from __future__ import annotations

import re
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from skillc_gym.errors import ConfigError, MissingDataError, needs_extra
from skillc_lab.cli.command import Command, complain, say
from skillc_lab.cli.main import split_command
from trainers.base import Natural, NotNegative, Positive

_KEPT = 2000
"""Characters of a command's output that come back."""


@dataclass(frozen=True)
class FanOutOptions:
    """Run a file of skillc commands, one a line, on the machines of a Ray cluster.

    For evaluations (of checkpoints, splits, seeds) and for making data. The folder in which it is started must be one
    that all machines see, and the package be installed on each.

    Example: skillc tools fan-out evaluations.txt --gpus 1
    """

    file: Annotated[Path, tyro.conf.Positional]
    """The commands; a line that begins with # is left out."""
    address: str = "auto"
    """A cluster that runs: auto for the one this machine belongs to, local for this machine alone, or host:port."""
    cpus: Positive = 1.0
    """Cores that each command takes."""
    gpus: NotNegative = 0.0
    """GPUs that each command takes, or a part of one."""
    retries: Natural = 3
    """How often a command whose machine was lost is begun again."""


@dataclass(frozen=True)
class Outcome:
    """How a command ended, and where it ran if that is known."""

    words: tuple[str, ...]
    """The command, after ``skillc``."""
    status: int
    """Its exit status; -1 if its machine was lost as often as was allowed."""
    said: str = ""
    """The end of what it wrote."""
    seconds: float = 0.0
    machine: str = ""


def _run(options: FanOutOptions) -> int:
    if not options.file.is_file():
        raise MissingDataError(f"There is no file {options.file}; write one with a skillc command a line.")
    try:
        text = options.file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{options.file} is no text in UTF-8 ({error}); write one with a command a line.") from error
    outcomes = fan_out(read_commands(text), options)
    failed = sum(outcome.status != 0 for outcome in outcomes)
    say(f"{len(outcomes) - failed} of {len(outcomes)} commands succeeded.")
    return 1 if failed else 0


def _tell(outcome: Outcome) -> None:
    how = "done" if outcome.status == 0 else f"failed ({outcome.status})"
    where = f" on {outcome.machine}" if outcome.machine else ""
    complain(f"{how}{where}, {outcome.seconds:.0f} s: skillc {shlex.join(outcome.words)}")
    if outcome.status != 0:
        complain("\n".join(f"    {line}" for line in outcome.said.splitlines()[-5:]))


def read_commands(text: str) -> list[tuple[str, ...]]:
    """One command a line, quoted as in a shell; ``skillc`` in front may be left out, ``#`` begins a comment."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            words = shlex.split(_without_comment(line))
        except ValueError as error:
            raise ConfigError(f"Line {number} is no command ({error}): {line!r}") from error
        words = words[1:] if words[:1] == ["skillc"] else words
        found += [tuple(words)] if words else []
    if not found:
        raise ConfigError("There is no command in the file; write one a line, such as: evaluate model=shipped seed=1")
    for command in found:
        split_command(command)
    return found


_BEFORE_COMMENT = re.compile(r"""(?:[^\s'"\\#]|\\.|'[^']*'|"(?:\\.|[^"\\])*"|(?<=\S)#|\s)*""")


def _without_comment(line: str) -> str:
    """The line up to a word that begins with ``#``; `shlex` cuts inside of words, too."""
    before = _BEFORE_COMMENT.match(line)
    end = before.end() if before else 0
    return line[:end] if line[end:].startswith("#") else line


def run_one(words: Sequence[str], folder: str) -> Outcome:
    """Runs a command in a process of its own, in a folder that all machines see."""
    began = time.monotonic()
    program = [sys.executable, "-m", "skillc_lab", *words]
    done = subprocess.run(
        program, cwd=folder, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    seconds = time.monotonic() - began
    return Outcome(tuple(words), done.returncode, done.stdout.strip()[-_KEPT:], seconds, socket.gethostname())


def fan_out(commands: Sequence[Sequence[str]], options: FanOutOptions) -> list[Outcome]:
    """Runs commands as Ray tasks; outcomes in their order, each told as it comes."""
    ray = _connected(options.address)
    try:
        remote = ray.remote(num_cpus=options.cpus, num_gpus=options.gpus, max_retries=options.retries)(run_one).remote
        waiting = {remote(list(words), str(Path.cwd())): place for place, words in enumerate(commands)}
        outcomes: dict[int, Outcome] = {}
        while waiting:
            (ready,), _ = ray.wait(list(waiting), num_returns=1)
            place = waiting.pop(ready)
            try:
                outcomes[place] = ray.get(ready)
            except ray.exceptions.RayError as error:
                outcomes[place] = Outcome(tuple(commands[place]), -1, str(error).strip()[-_KEPT:])
            _tell(outcomes[place])
    finally:
        ray.shutdown()
    return [outcomes[place] for place in range(len(commands))]


def _connected(address: str) -> Any:
    with needs_extra("ray", "ray"):
        import ray
    try:
        ray.init(address=address, log_to_driver=False)
    except Exception as error:  # Ray raises plain ones, too.
        said = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ConfigError(
            f"Ray neither found nor started a cluster at address={address!r} ({said}). Start one with `ray start "
            "--head`, or pass --address local."
        ) from error
    return ray


COMMAND = Command(FanOutOptions, _run, "interrupted; what was finished stays.")
