"""``skillc tools convert-skills``: read skills of another form into a library, or write a library in another form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from skill_library import BUILT_IN, Skill, SkillFileError, decode, load_library, read_bounded
from skill_library.formats import SkillFormat, assign_types
from skillc_gym.envs.registry import described_env
from skillc_gym.errors import ConfigError
from skillc_gym.files import replace_file
from skillc_lab.cli.command import Command, say
from trainers.base import Registry

FORMATS = Registry("form of skills", "skill_library.formats", "FORMAT", "skillc_gym.skill_formats")
"""Forms by name; a package adds one by an entry point of the group, naming a `SkillFormat`."""

_MOST_BYTES = 16_777_216


@dataclass(frozen=True)
class ConvertSkillsOptions:
    """Read skills of another form into a library, or write a library in another form.

    The form of what is read is found out: a folder of SKILL.md files (this project's or others'), a text with
    sections (### NAME ###, as with Skill0), or a bank in JSON (as with SkillRL).

    Example: skillc tools convert-skills bank.json my_skills --env alfworld --types examine=look_at_obj_in_light
    """

    source: Annotated[str, tyro.conf.Positional]
    """What to read: a folder, a file, or the name of a built-in library."""
    target: Annotated[Path, tyro.conf.Positional]
    """What to write: a new folder, or a file with --to sections and --to bank."""
    to: str = "library"
    """Form to write: library (folders that pass agentskills.io's validator; agent-skills is the same), sections (a
    text), bank (JSON), or one of your own as module:NAME."""
    form: str | None = None
    """Form of the source, by the same names, where it is not found out."""
    env: str | None = None
    """Environment whose task types the skills are for; types stay as the source calls them if none."""
    types: tuple[str, ...] = ()
    """What the source's types are in the environment, as OLD=NEW; * makes a skill general."""
    references: bool = False
    """Put the texts of a skill's folder references behind its own."""


def _run(options: ConvertSkillsOptions) -> int:
    skills = _read(options)
    types = _types(options)
    if types:
        skills = assign_types(skills, types)
    form = FORMATS.get(options.to)
    if form.folder:
        form.write(skills, options.target)
    else:
        replace_file(options.target, [form.write(skills).encode("utf-8")])
    kinds = sorted({kind for skill in skills for kind in skill.task_types})
    say(f"{len(skills)} skills for {', '.join(kinds)}: {options.target}")
    return 0


def _read(options: ConvertSkillsOptions) -> list[Skill]:
    source = Path(options.source)
    if options.source in BUILT_IN:
        return list(load_library(options.source).skills)
    if not source.is_dir() and not source.is_file():
        raise ConfigError(f"There is neither a file nor a folder {options.source!r}, nor a library of that name")
    form: SkillFormat = FORMATS.get(options.form) if options.form else _form_of(source)
    if form.folder:
        return form.read(source, references=options.references)
    try:
        return form.read(decode(read_bounded(source, _MOST_BYTES)))
    except RecursionError as error:
        raise SkillFileError(f"{source}: nested too deep") from error
    except ValueError as error:
        raise SkillFileError(f"{source}: {error}") from error


def _form_of(source: Path) -> SkillFormat:
    forms: list[SkillFormat] = [FORMATS.get(name) for name in FORMATS.names()]
    if source.is_dir():
        return next(form for form in forms if form.folder)
    claimed = [form for form in forms if not form.folder and source.suffix in form.suffixes]
    return claimed[0] if claimed else next(form for form in forms if "" in form.suffixes)


def _types(options: ConvertSkillsOptions) -> dict[str, Sequence[str]]:
    known: Mapping[str, str] = described_env(options.env).task_types if options.env else {}
    types: dict[str, Sequence[str]] = {name: (kind,) for kind, short in known.items() for name in (kind, short)}
    for word in options.types:
        old, equals, new = word.partition("=")
        if not equals or not new or (known and new not in types and new != "*"):
            raise ConfigError(f"--types wants OLD=NEW with NEW one of {', '.join([*known, '*'])}; got {word!r}")
        types[old] = types.get(new, (new,))
    return types


COMMAND = Command(ConvertSkillsOptions, _run)
