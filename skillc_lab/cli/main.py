"""``skillc``: finds the command and runs it."""

from __future__ import annotations

import ast
import importlib
import re
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources

from skillc_gym.errors import unknown_name
from skillc_gym.version import __version__
from skillc_lab.cli.command import Command, complain, run_command, say

__all__ = ["command_modules", "command_names", "find_command", "main"]

_ROOMS = ("skillc_lab.commands",)
_SUMMARY = re.compile(r"``skillc ([a-z-]+)``: (.+?)\.?$", re.MULTILINE)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line.

    Args:
        argv: The words after ``skillc``; those of this process by default.

    Returns:
        The exit status.
    """
    name, *words = list(sys.argv[1:] if argv is None else argv) or ["help"]
    if name in ("-h", "--help", "help"):
        return main([words[0], "--help"]) if words else _say_overview()
    if name == "--version":
        say(f"skillc-gym {__version__}")
        return 0
    if name not in command_modules():
        complain(f"skillc: error: {unknown_name('command', name, command_names())}")
        return 2
    return run_command(find_command(name), words, f"skillc {name}")


@cache
def command_modules() -> Mapping[str, tuple[str, str]]:
    """Every command's module and summary, by name.

    A module is a command if its doc string begins with the command's name and summary, as this one's does; it is read
    and not imported, so that the list costs nothing.
    """
    found = {}
    for room in _ROOMS:
        for file in resources.files(room).iterdir():
            if file.name.endswith(".py"):
                doc = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
                if match := _SUMMARY.match(doc):
                    found[match[1]] = (f"{room}.{file.name.removesuffix('.py')}", match[2])
    return dict(sorted(found.items()))


def command_names() -> tuple[str, ...]:
    """The names of all commands."""
    return tuple(command_modules())


def find_command(name: str) -> Command[object]:
    """Imports a command's module, in which it is called ``COMMAND``."""
    command: Command[object] = importlib.import_module(command_modules()[name][0]).COMMAND
    return command


def _say_overview() -> int:
    width = max(map(len, command_names()))
    say("usage: skillc COMMAND [--option VALUE | option=value ...]\n")
    for name, (_, summary) in command_modules().items():
        say(f"  {name:<{width}}  {summary[0].upper()}{summary[1:]}")
    say("\nskillc COMMAND --help lists a command's options with their meaning and default.")
    return 0
