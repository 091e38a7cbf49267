"""README and documentation: every page is on the map, every shell line can be typed."""

from __future__ import annotations

import os
import re
import shlex
import tomllib
from collections.abc import Callable
from dataclasses import MISSING
from pathlib import Path

import pytest

from skillc_lab.cli.help import completed
from skillc_lab.cli.main import command_names, find_command, split_command
from skillc_lab.cli.options import options_of, parse

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TESTS = sorted((ROOT / "tests").rglob("test_*.py"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"^([\w-]+):", MAKEFILE, re.MULTILINE))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*/*.md")), ids=lambda page: page.name)
def test_python_is_run_by_a_test(page: Path):
    """In a folder; `test_python_blocks` runs those of all other pages."""
    if re.search(r"^```python$", page.read_text(encoding="utf-8"), re.MULTILINE):
        assert any(f'"{page.name}"' in path.read_text(encoding="utf-8") for path in TESTS), f"no test names {page.name}"


def test_every_page_is_on_the_map():
    linked = set(re.findall(r"\]\(([\w-]+\.md)\)", (ROOT / "docs" / "index.md").read_text(encoding="utf-8")))
    assert linked == {page.name for page in (ROOT / "docs").glob("*.md")} - {"index.md"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_modules_and_targets_exist(page: Path):
    text = page.read_text(encoding="utf-8")
    assert set(re.findall(r"(?:^|`)make ([a-z][\w-]*)", text, re.MULTILINE)) <= TARGETS
    for folder, name in re.findall(r"\b(scripts|benchmarks)[./](\w+)", text):
        assert [*(ROOT / folder).glob(f"{name}.*"), *(ROOT / folder).glob(name)], name
    for name in re.findall(r"`((?:skillc_gym|trainers|skill_library)(?:\.[a-z_]+)+)(?:\.[A-Za-z]\w*)?`", text):
        place = ROOT / name.replace(".", "/")
        parent = place.parent
        assert (
            place.exists()
            or any(path.with_suffix(".py").exists() for path in (place, parent))
            or (parent / "__init__.py").exists()
        ), name


def shell_lines() -> list[tuple[str, str]]:
    """Every line of a shell block and every quoted ``skillc`` command of README and documentation, with its page."""
    found = set()
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        quoted = [part for line in re.findall(r"`(skillc [^`]+)`", text) for part in line.split(" && ")]
        lines = [line for line in quoted if re.match(r"skillc (?!COMMAND|help COMMAND|\w+:)", line)]
        for language, block in re.findall(r"^```(bash|)\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
            whole = [line.split("  #")[0].strip() for line in re.sub(r"\s*\\\n\s*", " ", block).splitlines()]
            lines += [line for line in whole if language or line.partition(" ")[0] in TYPED]
        found |= {(page.name, part) for line in lines for part in line.split(" && ") if part}
    return sorted(found)


def skillc(line: str) -> None:
    """Options are understood; three dots stand for the required ones."""
    typed = shlex.split(line.removesuffix("...").removeprefix("skillc "))
    typed = [*typed[1:], "--help"] if typed[0] == "help" else typed
    if typed in (["--help"], ["tools"]):
        return
    name, words = split_command(typed)
    options = find_command(name).options
    if words and not {"--help", "--help-all"}.intersection(words):
        required = [option for option in options_of(options).values() if option.default is MISSING]
        given = [f"{option.name}=x" for option in required] if line.endswith("...") else []
        parse(options, [*given, *words], f"skillc {name}")


def make(line: str) -> None:
    assert line.split()[1] in TARGETS


def pip(line: str) -> None:
    """Extras, files and exact versions are those of the project."""
    for extra in re.findall(r"\[([\w,-]+)\]", line):
        assert set(extra.split(",")) <= set(PROJECT["optional-dependencies"])
    assert all((ROOT / file).exists() for file in re.findall(r"-[cr] (\S+)", line))
    assert all(pin in MAKEFILE for pin in re.findall(r"[\w-]+==\S+", line))


def python(line: str) -> None:
    """A module of the project knows every option."""
    module = re.findall(r"-m (\S+)", line)[0]
    if module != "venv":
        place = ROOT / module.replace(".", "/")
        sources = [place.with_suffix(".py")] if place.with_suffix(".py").exists() else sorted(place.glob("*.py"))
        known = "".join(path.read_text(encoding="utf-8") for path in [*sources, ROOT / "benchmarks" / "measuring.py"])
        assert all(f'"{option}"' in known for option in re.findall(r" (--[\w-]+)", line))


def docker(line: str) -> None:
    assert all((ROOT / file).exists() for file in re.findall(r"-f (\S+)", line))
    for command in re.findall(r" run .* skillc-gym(?::gpu)? (.+)$", line):
        skillc(f"skillc {command}")


def accelerate(line: str) -> None:
    skillc(f"skillc train {re.findall(r'(?:skillc_lab train|train.py) (.+)$', line)[0]}")


def script(line: str) -> None:
    assert os.access(ROOT / line.partition(" ")[0], os.X_OK)


TYPED: dict[str, Callable[[str], None]] = {
    **{"skillc": skillc, "make": make, "pip": pip, "python": python, "python3": python, "docker": docker},
    **{"accelerate": accelerate, "scripts/install_torch.sh": script, "scripts/smollm2/night.sh": script},
    **dict.fromkeys((".", "export", "apt-get", "tensorboard", "transformers", "vf-eval", "openenv"), lambda line: None),
}
"""What checks a line of each program; those of others, and the shell's own words, are taken as they are."""


@pytest.mark.parametrize(("page", "line"), shell_lines())
def test_shell_lines_can_be_typed(page: str, line: str):
    """`make newcomer` types README and tutorial."""
    program = line.partition(" ")[0]
    assert program in TYPED, page
    TYPED[program](line)


def test_the_page_of_commands_names_commands_only():
    """What it leaves out is added when the site is built, so a new command needs no page."""
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `skillc ((?:tools )?[\w-]+)", page, re.MULTILINE)) <= set(command_names())
    assert "| `skillc play` |" in completed("| `skillc plan` | x | y |\n\nz")
    short = completed("| `skillc tools card`, `tag-nouns FOLDER` | x | y |\n")
    assert "tag-nouns`" not in short, "a row may name several"
    assert "| `skillc tools make-games` |" in short
