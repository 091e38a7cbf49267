"""A command: a class of options and a function that runs with them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from skillc_gym.errors import MissingDataError, SkillCError
from skillc_lab.commands.cli.console import complain, say
from skillc_lab.commands.cli.grammar import parse
from skillc_lab.commands.extras import missing_package
from trainers.interruption import interrupts

__all__ = ["Command", "run_command"]

Options = TypeVar("Options")


@dataclass(frozen=True)
class Command(Generic[Options]):
    """One command."""

    options: type[Options]
    """A dataclass: its doc string and those of its fields are the command's help."""
    run: Callable[[Options], int]
    """Returns the exit status."""
    interrupted: str = "interrupted"
    """What Ctrl-C or SIGTERM leaves behind, in words."""
    more_help: Callable[[Sequence[str]], str] | None = None
    """Writes what follows the help, by the words that were typed."""


def run_command(command: Command[Any], words: Sequence[str], prog: str) -> int:
    """Runs a command; says in one line what was wrong.

    Args:
        command: The command.
        words: What was typed behind its name.
        prog: The command, as it is typed.

    Returns:
        The exit status: 2 for bad input and anything missing, 1 for what the system refuses, 130 after Ctrl-C or
        SIGTERM.
    """
    try:
        status = _run(command, words, prog)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # Whoever read the output has gone; Python would complain once more when it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


def _run(command: Command[Any], words: Sequence[str], prog: str) -> int:
    try:
        with interrupts():
            return command.run(parse(command.options, words, prog))
    except KeyboardInterrupt:
        complain(f"{prog}: {command.interrupted}")
        return 130
    except SystemExit as leaving:
        return _helped(command, words, prog, int(leaving.code or 0))
    except BrokenPipeError:
        raise
    except (SkillCError, ModuleNotFoundError, OSError) as error:
        complain(f"{prog}: error: {_named(error)}")
        refused = isinstance(error, OSError) and not isinstance(error, MissingDataError)
        return 1 if refused else 2


def _helped(command: Command[Any], words: Sequence[str], prog: str, status: int) -> int:
    """Completes the help that was printed."""
    if status == 0 and command.more_help:
        try:
            say(command.more_help(words))
        except SkillCError as error:
            complain(f"{prog}: error: {error}")
            return 2
    return status


def _named(error: Exception) -> Exception:
    """The error, or for a package that an extra brings one that names the extra."""
    if not isinstance(error, ModuleNotFoundError) or isinstance(error, SkillCError):
        return error
    named = missing_package(error.name or "")
    if named is None:
        raise error
    return named
