"""Hostile skill files."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from benchmarks.fuzz.target import FuzzTarget, Run, changed_text
from skill_library import SkillCError, SkillLibrary, load_library

__all__ = ["TARGET"]

GOOD = "---\nname: heat\ndescription: Heat a thing.\ntask_types: [heat, cook]\nlicense: MIT\n---\nOpen the microwave.\n"
PIECES = (
    "&a ",
    "*a",
    "<<: ",
    "!!python/name:os.system ",
    "!!binary ",
    "!!timestamp ",
    "? ",
    "[",
    "{a: ",
    "- ",
    "|\n  ",
    ">-\n",
    "%YAML 1.1\n",
    "---\n",
    "...\n",
    "'",
    '"\\',
    "2001-99-99",
    "0x",
    "=",
    "~",
    "\t",
    "\r\n",
    "\x00",
    "\x85",
    "\u2028",
    "../",
    "name: heat\n",
    "\ufeff",
)


def skills_target(atheris: Any) -> Run:
    """Reads a library of two mutated skills; whatever is accepted must be within its bounds and read the same twice."""
    folder = tempfile.TemporaryDirectory(prefix="skillc-fuzz-")
    files = [Path(folder.name) / name / "SKILL.md" for name in ("one", "two")]
    for file in files:
        file.parent.mkdir()

    def target(data: bytes) -> None:
        provider = atheris.FuzzedDataProvider(data)
        for file in files:
            file.write_bytes(_content(provider))
        library = _read(folder.name) or SkillLibrary("empty", ())
        for kind in library.task_types:
            skill = library.for_task(kind)
            assert len(skill.text) <= library.longest, "a text longer than the longest"
            assert not set(skill.name) & set("/\\\0\n"), "a name that is a path"

    target.__dict__["folder"] = folder
    return target


def _read(folder: str) -> SkillLibrary | None:
    refusal = ""
    try:
        return load_library(folder)
    except SkillCError as error:
        refusal = str(error)
    assert len(refusal) < 2_000, "an endless message"
    return None


def _content(provider: Any) -> bytes:
    if provider.ConsumeIntInRange(0, 9) == 0:
        return bytes(provider.ConsumeBytes(400))
    text = GOOD
    for _ in range(provider.ConsumeIntInRange(1, 4)):
        text = changed_text(provider, text, PIECES)
    return text.encode("utf-8", "surrogatepass")


TARGET = FuzzTarget(
    "Skill files with pieces of YAML put in, repeated or dropped; a library is read or refused in a short sentence.",
    skills_target,
    ("skill_library.", "yaml."),
)
