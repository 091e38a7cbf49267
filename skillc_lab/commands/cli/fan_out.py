"""``skillc fan-out``."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from skillc_gym.errors import MissingDataError, unknown_name
from skillc_lab.commands.cli.command import Command
from skillc_lab.commands.cli.console import complain, say
from skillc_lab.commands.fan_out import Outcome, fan_out, read_commands
from trainers.config.bounds import Natural, NotNegative, Positive

__all__ = ["COMMAND", "FanOutOptions"]


@dataclass(frozen=True)
class FanOutOptions:
    """Run a file of skillc commands, one a line, on the machines of a Ray cluster.

    For evaluations (of checkpoints, splits, seeds) and for making data. The folder in which it is started must be one
    that all machines see, and the package be installed on each.

    Example: skillc fan-out evaluations.txt --gpus 1
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


def run(options: FanOutOptions) -> int:
    """Runs the command; 1 if one of the commands failed."""
    from skillc_lab.commands.cli.main import COMMANDS

    if not options.file.is_file():
        raise MissingDataError(f"There is no file {options.file}; write one with a skillc command a line.")
    commands = read_commands(options.file.read_text(encoding="utf-8"))
    for name in {words[0] for words in commands} - COMMANDS.keys():
        raise unknown_name("command", name, COMMANDS)
    outcomes = fan_out(
        commands,
        address=options.address,
        cpus=options.cpus,
        gpus=options.gpus,
        retries=options.retries,
        note=_tell,
    )
    failed = sum(outcome.status != 0 for outcome in outcomes)
    say(f"{len(outcomes) - failed} of {len(outcomes)} commands succeeded.")
    return 1 if failed else 0


def _tell(outcome: Outcome) -> None:
    how = "done" if outcome.status == 0 else f"failed ({outcome.status})"
    where = f" on {outcome.machine}" if outcome.machine else ""
    complain(f"{how}{where}, {outcome.seconds:.0f} s: skillc {shlex.join(outcome.words)}")
    if outcome.status != 0:
        complain("\n".join(f"    {line}" for line in outcome.said.splitlines()[-5:]))


COMMAND = Command(FanOutOptions, run, "interrupted; what was finished stays.")
