"""``skillc``: finds the command and runs it."""

from __future__ import annotations

import ast
import importlib
import io
import os
import re
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources

from skillc_gym.errors import SkillCError, unknown_name
from skillc_gym.version import __version__
from skillc_lab.cli.command import Command, complain, run_command, say

_ROOM = "skillc_lab.commands"
_SUMMARY = re.compile(r"^``skillc ([a-z -]+)``: (.+?)\.?$", re.MULTILINE)
_TOOLS = "tools"
_HELP = {"-h", "--help", "help"}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line by the words after ``skillc``; the exit status, 141 where whoever reads has gone."""
    _mend_streams()
    try:
        status = _main(list(sys.argv[1:] if argv is None else argv) or ["help"])
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # Python would complain once more when it closes the stream.
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except BrokenPipeError:
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return 141


def _mend_streams() -> None:
    """Opens what the caller has closed, and lets results have letters that standard output cannot write."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(nowhere, True)
            setattr(sys, name, os.fdopen(nowhere, "r" if name == "stdin" else "w", encoding="utf-8"))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # as standard error has it


def _main(words: list[str]) -> int:
    if words == ["--version"]:
        say(f"skillc-gym {__version__}")
        return 0
    if words[0] in _HELP:
        words = [*words[1:], "--help"]
    if words[0] in _HELP or (words[0] == _TOOLS and not set(words[1:]) - _HELP):
        _say_overview(_TOOLS if words[0] == _TOOLS else "")
        return 0
    try:
        name, rest = split_command(words)
    except SkillCError as error:
        complain(f"skillc: error: {error}")
        return 2
    if words[: len(name.split())] != name.split():
        complain(f"note: skillc {words[0]} is called skillc {name} now")
    return run_command(find_command(name), rest, f"skillc {name}")


def split_command(words: Sequence[str]) -> tuple[str, Sequence[str]]:
    """The command's name and the words after it; what is a tool now was a command of its own."""
    for name in (" ".join(words[:2]), words[0]):
        if name in command_modules():
            return name, words[len(name.split()) :]
    if f"{_TOOLS} {words[0]}" in command_modules():
        return f"{_TOOLS} {words[0]}", words[1:]
    raise unknown_name("command", " ".join(words[: 1 + (words[0] == _TOOLS)]), command_names())


@cache
def command_modules() -> Mapping[str, tuple[str, str]]:
    """Every command's module and summary, by name.

    A module is a command if its doc string begins with the command's name and summary, as this one's does, or several
    commands with a line each; it is read and not imported, so that the list costs nothing.
    """
    found = {}
    for file in resources.files(_ROOM).iterdir():
        if file.name.endswith(".py"):
            doc = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
            for match in _SUMMARY.finditer(doc if doc.startswith("``skillc ") else ""):
                found[match[1]] = (f"{_ROOM}.{file.name.removesuffix('.py')}", match[2])
    return dict(sorted(found.items()))


def command_names() -> tuple[str, ...]:
    """The names of all commands."""
    return tuple(command_modules())


def find_command(name: str) -> Command[object]:
    """Imports a command's module, in which it is called ``COMMAND``, or stands in ``COMMANDS`` by name."""
    name, _ = split_command(name.split())
    module = importlib.import_module(command_modules()[name][0])
    command: Command[object] = vars(module).get("COMMANDS", {}).get(name) or module.COMMAND
    return command


def _say_overview(group: str) -> None:
    known = {name: summary for name, (_, summary) in command_modules().items()}
    tools = {name: summary for name, summary in known.items() if name.startswith(f"{_TOOLS} ")}
    chosen = tools if group else {name: known[name] for name in known if name not in tools}
    if not group:
        chosen[_TOOLS] = f"make and convert things: {', '.join(name.split()[1] for name in tools)}"
    say(f"usage: skillc {f'{group} ' if group else ''}COMMAND [--option VALUE | option=value ...]\n")
    for name, summary in chosen.items():
        say(f"  {name:<{max(map(len, chosen))}}  {summary[0].upper()}{summary[1:]}")
    say("\nskillc help COMMAND lists a command's options with their meaning and default.")
