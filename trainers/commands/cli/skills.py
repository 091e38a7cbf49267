"""``skillc skills``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import tyro

from skill_library import SkillLibrary, load_library
from skillc_gym.envs.registry import env_specs
from skillc_gym.errors import ConfigError, unknown_name
from trainers.commands.cli.command import Command
from trainers.commands.cli.console import say
from trainers.skills.check import Finding, check_library, diff_libraries, lint_library, skill_lengths

__all__ = ["COMMAND", "SkillsOptions"]


@dataclass(frozen=True)
class SkillsOptions:
    """Look at skill libraries.

    check: lengths, duplicates, task types without a skill, and what an episode of a type would read (--shows TYPE).
    lint: skills that are long, or that name things of a single task.
    diff: what changed from the first library to the second.

    The exit status is 1 if something serious was found, or, for diff, if the libraries differ.

    Example: skillc skills check alfworld
    """

    what: Annotated[str, tyro.conf.Positional]
    """check, lint or diff."""
    library: Annotated[str, tyro.conf.Positional]
    """Library by name or folder."""
    other: Annotated[str | None, tyro.conf.Positional] = None
    """The second library of diff."""
    env: str | None = None
    """Environment whose task types must be served; by default the one that uses the library."""
    model: str | None = None
    """Count tokens by this model's tokenizer too."""
    shows: str | None = None
    """Print what an episode of this task type would read."""
    grade: Literal["full", "minimal"] = "full"
    """How much of it."""


def skills(options: SkillsOptions) -> int:
    """Runs the command."""
    library = load_library(options.library)
    if options.what == "diff":
        if options.other is None:
            raise ConfigError("skillc skills diff compares two libraries; name the second")
        lines = diff_libraries(library, load_library(options.other))
        say("\n".join(lines) or "The libraries say the same.")
        return int(bool(lines))
    if options.what == "lint":
        return _tell(lint_library(library))
    if options.what != "check":
        raise unknown_name("look at skills", options.what, ("check", "lint", "diff"))
    say(_lengths(options, library))
    if options.shows is not None:
        text = library.graded(options.grade).for_task(options.shows)
        say(f"\n{options.shows} reads {text.name} ({options.grade}, sha256 {text.sha256[:12]}):\n\n{text.text}\n")
    return _tell(check_library(library, _task_types(options)))


def _lengths(options: SkillsOptions, library: SkillLibrary) -> str:
    count = None
    if options.model is not None:
        from trainers.config import TrainConfig
        from trainers.models import load_plain_tokenizer

        tokenizer = load_plain_tokenizer(TrainConfig(model=options.model, env=options.env or "alfworld"))
        count = lambda text: len(tokenizer.encode(text, add_special_tokens=False))  # noqa: E731
    lines = [f"{'skill':<14}{'words':>7}{'tokens':>8}  serves"]
    for length in skill_lengths(library, count):
        tokens = "-" if length.tokens is None else str(length.tokens)
        lines.append(f"{length.name:<14}{length.words:>7}{tokens:>8}  {', '.join(length.task_types)}")
    return "\n".join(lines)


def _task_types(options: SkillsOptions) -> tuple[str, ...]:
    for spec in env_specs():
        if options.env == spec.name or (options.env is None and options.library == spec.library):
            return tuple(spec.task_types)
    if options.env is not None:
        raise unknown_name("environment", options.env, [spec.name for spec in env_specs()])
    return ()


def _tell(findings: list[Finding]) -> int:
    for finding in findings:
        mark = "error" if finding.serious else "note"
        say(f"{mark}: {finding.skill or 'the library'}: {finding.message}")
    if not findings:
        say("Nothing found.")
    return int(any(finding.serious for finding in findings))


COMMAND = Command(SkillsOptions, skills)
