"""A command: a class of options and a function that runs with them; what it says, and how it ends."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from skillc_gym.errors import ConfigError, MissingDataError, SkillCError, missing_extra
from skillc_gym.pages import printable
from skillc_lab.cli.extras import extra_of
from skillc_lab.cli.options import parse
from trainers.base import interrupts

Options = TypeVar("Options")


@dataclass(frozen=True)
class Command(Generic[Options]):
    """One command."""

    options: type[Options]
    """A dataclass: its doc string and those of its fields are the command's help."""
    run: Callable[[Options], int]
    """Returns the exit status."""
    interrupted: str = "interrupted"
    """What Ctrl-C or SIGTERM leaves, in a few words."""
    main_options: tuple[str, ...] = ()
    """Options that --help shows, where --help-all shows the others too; all of them if none is named."""
    more_help: Callable[[Sequence[str]], str] | None = None
    """Writes what follows the help, by the words that were typed."""
    complete: Callable[[dict[str, Any]], tuple[Mapping[str, Any], Sequence[str]]] | None = None
    """From the options that were typed to all that are known (those of a policy's folder), and what to say of that."""


def run_command(command: Command[Any], words: Sequence[str], prog: str) -> int:
    """Runs a command by the words after its name, ``prog``; says in one line what was wrong.

    Returns:
        The exit status: 2 for bad input and anything missing, 1 for what the system refuses and for cells that failed
        or differ, 130 after Ctrl-C or SIGTERM.

    Raises:
        BrokenPipeError: The reader of the output has gone.
    """
    try:
        with interrupts():
            return command.run(parse(command.options, words, prog, command.main_options, command.complete))
    except KeyboardInterrupt:
        complain(f"{prog}: {command.interrupted}")
        return 130
    except SystemExit as leaving:
        return _complete_help(command, words, prog, int(leaving.code or 0))
    except BrokenPipeError:
        raise
    except (SkillCError, ModuleNotFoundError, OSError) as error:
        complain(f"{prog}: error: {_with_extra(error)}")
        refused = isinstance(error, OSError) and not isinstance(error, MissingDataError)
        return 1 if refused else 2


def _complete_help(command: Command[Any], words: Sequence[str], prog: str, status: int) -> int:
    if status == 0 and command.more_help:
        try:
            say(command.more_help(words))
        except SkillCError as error:
            complain(f"{prog}: error: {error}")
            return 2
    return status


def _with_extra(error: Exception) -> Exception:
    """The error, or for a package that an extra brings one that names the extra."""
    if not isinstance(error, ModuleNotFoundError):
        return error
    extra = extra_of(error.name or "")
    if extra is None:
        raise error
    return missing_extra(str(error.name).partition(".")[0], extra)


# What commands say: results on standard output, everything else on standard error -----------------------------------


def say(text: str) -> None:
    """Writes a result."""
    sys.stdout.write(printable(text) + "\n")


def complain(text: str) -> None:
    """Writes what a person should know but no program should read."""
    sys.stderr.write(printable(text) + "\n")


def count_line(name: str, done: int, total: int, tail: str = "") -> None:
    """Rewrites one line of progress; into a file, only the last one is written."""
    end = "\n" if done == total else "\r" if sys.stderr.isatty() else ""
    if end:
        sys.stderr.write(f"{name:>14} {done:5d}/{total}{tail}{end}")
        sys.stderr.flush()


def refuse_options(options: Any, names: Iterable[str], what: str, remedy: str = "") -> None:
    """ConfigError for the first of these options that was given, that is, is not at its default."""
    for name in names:
        if getattr(options, name) != getattr(type(options), name):
            raise ConfigError(f"{what} has no use for --{name}; leave it out{remedy}")


def require_empty(folder: Path) -> None:
    """Refuses a folder that holds something, and a place where none can be made, with a ConfigError."""
    above = next(place for place in (folder, *folder.parents) if place.exists())
    if not above.is_dir():
        raise ConfigError(f"{above} is a file; {folder} is not an empty folder; name a new folder, or empty it first.")
    if folder.exists() and any(folder.iterdir()):
        raise ConfigError(f"{folder} exists and is not an empty folder; name a new folder, or empty it first.")
