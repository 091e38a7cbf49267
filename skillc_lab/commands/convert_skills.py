"""``skillc convert-skills``: read skills of another form into a library, or write a library in another form."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from skill_library import Skill, load_library
from skill_library.errors import SkillFileError
from skill_library.files import read_bounded
from skill_library.formats import (
    assign_types,
    read_agent_skills,
    read_bank,
    read_sections,
    to_bank,
    to_sections,
    write_agent_skills,
    write_library,
)
from skill_library.loader import BUILT_IN, decode
from skillc_gym.envs.registry import described_env
from skillc_gym.errors import ConfigError
from skillc_gym.files import replace_file
from skillc_lab.cli.command import Command, say

__all__ = ["COMMAND", "ConvertSkillsOptions"]

_MOST_BYTES = 16_777_216


@dataclass(frozen=True)
class ConvertSkillsOptions:
    """Read skills of another form into a library, or write a library in another form.

    The form of what is read is found out: a folder of SKILL.md files (this project's or the ecosystem's), a text with
    sections (### NAME ###, as with Skill0), or a bank in JSON (as with SkillRL).

    Example: skillc convert-skills bank.json my_skills --env alfworld --types examine=look_at_obj_in_light
    """

    source: Annotated[str, tyro.conf.Positional]
    """What to read: a folder, a file, or the name of a built-in library."""
    target: Annotated[Path, tyro.conf.Positional]
    """What to write: a new folder, or a file with --to sections and --to bank."""
    to: Literal["library", "agent-skills", "sections", "bank"] = "library"
    """Form to write: a library for this project, the ecosystem's folders, a text with sections, or a bank in JSON."""
    env: str | None = None
    """Environment whose task types the skills are for; types stay as the source calls them if none."""
    types: tuple[str, ...] = ()
    """What the source's types are in the environment, as OLD=NEW; * makes a skill general."""
    references: bool = False
    """Put the texts of a skill's folder references behind its own."""


def convert(options: ConvertSkillsOptions) -> int:
    """Runs the command."""
    skills = _read(options)
    types = _types(options)
    if types:
        skills = assign_types(skills, types)
    _WRITERS[options.to](skills, options.target)
    kinds = sorted({kind for skill in skills for kind in skill.task_types})
    say(f"{len(skills)} skills for {', '.join(kinds)}: {options.target}")
    return 0


def _read(options: ConvertSkillsOptions) -> list[Skill]:
    source = Path(options.source)
    if options.source in BUILT_IN:
        return list(load_library(options.source).skills)
    if source.is_dir():
        return read_agent_skills(source, references=options.references)
    if not source.is_file():
        raise ConfigError(f"There is neither a file nor a folder {options.source!r}, nor a library of that name")
    try:
        text = decode(read_bounded(source, _MOST_BYTES))
        return read_bank(json.loads(text)) if source.suffix == ".json" else read_sections(text)
    except RecursionError as error:
        raise SkillFileError(f"{source}: nested too deep") from error
    except ValueError as error:
        raise SkillFileError(f"{source}: {error}") from error


def _types(options: ConvertSkillsOptions) -> dict[str, Sequence[str]]:
    known: Mapping[str, str] = described_env(options.env).task_types if options.env else {}
    types: dict[str, Sequence[str]] = {name: (kind,) for kind, short in known.items() for name in (kind, short)}
    for word in options.types:
        old, equals, new = word.partition("=")
        if not equals or not new or (known and new not in types and new != "*"):
            raise ConfigError(f"--types wants OLD=NEW with NEW one of {', '.join([*known, '*'])}; got {word!r}")
        types[old] = types.get(new, (new,))
    return types


def _write_sections(skills: list[Skill], target: Path) -> None:
    replace_file(target, [to_sections(skills).encode("utf-8")])


def _write_bank(skills: list[Skill], target: Path) -> None:
    replace_file(target, [json.dumps(to_bank(skills), indent=2, ensure_ascii=False).encode("utf-8"), b"\n"])


_WRITERS: Mapping[str, Callable[[list[Skill], Path], object]] = {
    "library": write_library,
    "agent-skills": write_agent_skills,
    "sections": _write_sections,
    "bank": _write_bank,
}

COMMAND = Command(ConvertSkillsOptions, convert)
