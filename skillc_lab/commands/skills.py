"""``skillc skills``: check, lint and compare skill libraries; say what episodes were shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from skill_library import SkillFileError, SkillLibrary, load_library
from skillc_gym.envs.registry import EnvSpec, described_env, env_specs, short_type
from skillc_gym.errors import ConfigError, MissingDataError, unknown_name
from skillc_lab.cli.command import Command, refuse_options, say
from skillc_lab.skills.libraries import Flaw, check_library, diff_libraries, lint_library
from skillc_lab.skills.shown import (
    ShownText,
    check_shown,
    episode_files,
    read_episodes,
    shown_table,
    shown_text,
    shown_texts,
)
from skillc_lab.tables import Table
from trainers.config import TrainConfig
from trainers.models import load_plain_tokenizer

Counting = Callable[[str], int]


@dataclass(frozen=True)
class SkillsOptions:
    """Look at skill libraries, and at what recorded episodes were shown of them.

    check: lengths, duplicates, task types without a skill, and what an episode of a type would read (--shows TYPE).
    lint: skills that are long, or that name things of a single task.
    diff: what changed from the first library to the second.
    shown: what recorded episodes saw: skill texts by task type, condition and name, with lengths and hashes; with a
    library behind them, whether it says the same today; with --shows TYPE the texts themselves.

    The exit status is 1 if something serious was found, or, for diff, if the libraries differ.

    Whether skills help a model, a command of its own measures: skillc skills test.

    Examples: skillc skills check alfworld --shows heat; skillc skills shown runs/mine alfworld
    """

    what: Annotated[Literal["check", "lint", "diff", "shown"], tyro.conf.Positional]
    """check, lint, diff or shown."""
    library: Annotated[str, tyro.conf.Positional]
    """Library by name or folder; for shown, a file of transcripts, or the folder of a run or an evaluation."""
    other: Annotated[str | None, tyro.conf.Positional] = None
    """The second library of diff; for shown, a library to hold the texts against."""
    env: str | None = None
    """Environment whose task types must be served; by default the one that uses the library."""
    model: str | None = None
    """Count tokens by this model's tokenizer too."""
    shows: str | None = None
    """Print what an episode of this task type would read, or with shown did read; full or short name, such as heat."""
    grade: Literal["full", "minimal", "none"] = "full"
    """How much of it check prints."""


_OF_CHECK = ("env", "model", "shows", "grade")


def _check(options: SkillsOptions) -> int:
    library, spec = _one_library(options), _environment(options)
    if options.shows is None:
        refuse_options(options, ("grade",), "skillc skills check without --shows")
    say(_lengths(library, _counting(options)))
    types = spec.task_types if spec else {}
    if options.shows is not None:
        say(_would_read(library, _named_type(options.shows, [*library.task_types, *types], types), options.grade))
    if not types:
        say(_unchecked(spec))
    return _tell(check_library(library, tuple(types)), "Nothing found." if types else "Nothing else found.")


def _diff(options: SkillsOptions) -> int:
    refuse_options(options, _OF_CHECK, "skillc skills diff", ", or take skillc skills check")
    if options.other is None:
        raise ConfigError("skillc skills diff compares two libraries; name the second")
    lines = diff_libraries(_library(options.library), _library(options.other))
    say("\n".join(lines) or "The libraries say the same.")
    return int(bool(lines))


def _shown(options: SkillsOptions) -> int:
    unused = ("grade",) if options.model else ("env", "grade")
    refuse_options(options, unused, "skillc skills shown", ", or take skillc skills check")
    library = None if options.other is None else _library(options.other)
    files = episode_files(Path(options.library))
    shown = shown_texts(read_episodes(files))
    if not shown:
        raise MissingDataError(
            f"{options.library} holds no recorded episodes: expected a file of transcripts (.jsonl), or the folder of "
            "a run or an evaluation with transcripts.jsonl or transcripts/*.jsonl in it"
        )
    kind = options.shows and _named_type(options.shows, [each.task_type for each in shown], {})
    of_type = [each for each in shown if kind in (None, each.task_type)]
    say(shown_table(of_type, library, _counting(options)))
    say(_total(shown, len(files)))
    if options.shows is not None:
        say("".join(f"\n{shown_text(each)}" for each in of_type if each.text))
    theirs = "" if library is None else f", and with the skill each is or begins with that of {library.name}"
    return _tell(check_shown(of_type, library), f"No recorded hash or prompt contradicts its text{theirs}.")


def _lint(options: SkillsOptions) -> int:
    refuse_options(options, _OF_CHECK, "skillc skills lint", ", or take skillc skills check")
    return _tell(lint_library(_one_library(options)))


_LOOKS = {"check": _check, "lint": _lint, "diff": _diff, "shown": _shown}


# Reading -------------------------------------------------------------------------------------------------------------


def _one_library(options: SkillsOptions) -> SkillLibrary:
    if options.other is not None:
        raise ConfigError(
            f"skillc skills {options.what} looks at one library, got {options.other!r} beside it; leave it out, or "
            "compare the two by skillc skills diff"
        )
    return _library(options.library)


def _library(name: str) -> SkillLibrary:
    try:
        return load_library(name)
    except SkillFileError as error:
        if not _is_recorded(Path(name)):
            raise
        raise ConfigError(
            f"{name} holds recorded episodes and no skills; skillc skills shown {name} tells what they were shown"
        ) from error


def _is_recorded(place: Path) -> bool:
    """Whether it looks like recorded episodes; for a hint, so nothing is searched."""
    try:
        if place.is_file():
            return place.suffix == ".jsonl"
        return (place / "transcripts.jsonl").is_file() or (place / "transcripts").is_dir()
    except (OSError, ValueError):  # no such name can exist
        return False


def _environment(options: SkillsOptions) -> EnvSpec | None:
    """The environment that is named, or the one that uses the library; None if there is none."""
    if options.env is not None:
        return described_env(options.env)
    return next((spec for spec in env_specs() if options.library and spec.library == options.library), None)


def _named_type(name: str, kinds: Iterable[str], own: Mapping[str, str]) -> str:
    """The type of a name; ``own`` are the short names of the environment, if it is known."""
    short = {kind: own.get(kind) or short_type(kind) for kind in kinds}
    found = [kind for kind in short if kind == name] or [kind for kind in short if short[kind] == name]
    if len(found) != 1:
        raise unknown_name("task type", name, found or dict.fromkeys([*short.values(), *short]))
    return found[0]


def _counting(options: SkillsOptions) -> Counting | None:
    if options.model is None:
        return None
    spec = _environment(options)
    env = options.env or (spec.name if spec else TrainConfig.env)
    tokenizer = load_plain_tokenizer(TrainConfig(model=options.model, env=env))
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False))


# Telling -------------------------------------------------------------------------------------------------------------


def _lengths(library: SkillLibrary, count: Counting | None) -> str:
    rows = [
        (each.name, len(each.text.split()), count(each.text) if count else "-", ", ".join(each.task_types))
        for each in library.skills
    ]
    return Table(["skill", "words", "tokens", "serves"], rows, numbers=(1, 2)).text()


def _would_read(library: SkillLibrary, kind: str, grade: str) -> str:
    text = library.graded(grade).for_task(kind)
    if not text.text:
        return f"\n{kind} reads nothing ({grade}).\n"
    return f"\n{kind} reads {text.name} ({grade}, sha256 {text.sha256[:12]}):\n\n{text.text}\n"


def _total(shown: Sequence[ShownText], files: int) -> str:
    read = sum(each.episodes for each in shown if each.text)
    nothing = sum(each.episodes for each in shown) - read
    where = "1 file" if files == 1 else f"{files} files"
    return f"{read + nothing} episodes in {where}: {read} were shown a text, {nothing} were shown none."


def _unchecked(spec: EnvSpec | None) -> str:
    """Says that task types without a skill were not looked for, and why."""
    if spec is not None:
        why = f"the environment {spec.name} lists no task types"
    else:
        why = f"no environment was named; name it by --env: {', '.join(spec.name for spec in env_specs())}"
    return f"note: the library: task types without a skill were not checked, since {why}"


def _tell(findings: Sequence[Flaw], otherwise: str = "Nothing found.") -> int:
    for finding in findings:
        mark = "error" if finding.serious else "note"
        say(f"{mark}: {finding.skill or 'the library'}: {finding.message}")
    if not findings:
        say(otherwise)
    return int(any(finding.serious for finding in findings))


COMMAND = Command(SkillsOptions, lambda options: _LOOKS[options.what](options))
