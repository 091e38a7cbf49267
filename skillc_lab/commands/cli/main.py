"""``skillc``: finds the command and runs it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence

from skillc_gym.errors import unknown_name
from skillc_gym.version import __version__
from skillc_lab.commands.cli.command import Command, run_command
from skillc_lab.commands.cli.console import complain, say

__all__ = ["COMMANDS", "find_command", "main"]

COMMANDS: Mapping[str, str] = {
    "train": "Train a policy, or go on with a run that was interrupted",
    "evaluate": "Evaluate a policy with and without skills",
    "compare": "Train several methods under one protocol, and say which differ beyond noise",
    "study": "Run a grid of methods, starting points and seeds from a file",
    "demo": "Evaluate a small policy, train it, evaluate it again, draw the report",
    "report": "Draw the pictures and the page of a run or an evaluation",
    "replay": "Show recorded episodes, both conditions of a task side by side",
    "play": "Play a task in the terminal",
    "serve-webshop": "Serve the shop as a web site, for people and for agents with a browser",
    "skills": "Check, lint and compare skill libraries; say what episodes were shown",
    "learn-skills": "Write a skill library from transcripts",
    "make-policy": "Make a small policy from demonstrations",
    "get-model": "Fetch a pretrained language model, and convert it",
    "make-demonstrations": "Write demonstrations of an expert as JSON lines",
    "make-games": "Write generated ALFWorld games in upstream's layout",
    "make-catalog": "Make a WebShop catalogue from upstream's files or of generated products",
    "convert-skills": "Read skills of another form into a library, or write a library in another form",
    "card": "Write the card of an environment or a policy for a model hub",
    "tag-nouns": "Find the nouns of a catalogue's names beforehand",
    "fan-out": "Run a file of commands on the machines of a Ray cluster",
    "plan": "Say how much memory a run takes on each GPU, and which setting mends what does not fit",
    "gpu-check": "Check and measure training on this machine's GPU",
    "doctor": "Say what is installed, which data is seen, and what will run",
}
"""Each command lies in the module of its name, as ``COMMAND``."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line.

    Args:
        argv: The words behind ``skillc``; those of this process by default.

    Returns:
        The exit status.
    """
    name, *words = list(sys.argv[1:] if argv is None else argv) or ["help"]
    if name in ("-h", "--help", "help"):
        say(overview())
        return 0
    if name == "--version":
        say(f"skillc-gym {__version__}")
        return 0
    if name not in COMMANDS:
        complain(f"skillc: error: {unknown_name('command', name, COMMANDS)}")
        return 2
    return run_command(find_command(name), words, f"skillc {name}")


def find_command(name: str) -> Command[object]:
    """Imports a command's module."""
    module = importlib.import_module(f"skillc_lab.commands.cli.{name.replace('-', '_')}")
    command: Command[object] = module.COMMAND
    return command


def overview() -> str:
    """All commands, a line each."""
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {summary}" for name, summary in COMMANDS.items()]
    return "\n".join(
        [
            "usage: skillc COMMAND [--option VALUE | option=value ...]",
            "",
            *lines,
            "",
            "skillc COMMAND --help lists a command's options with their meaning and default.",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
