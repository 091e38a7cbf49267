"""The documentation's map: every link leads somewhere, every page is on the map, every command named exists."""

from __future__ import annotations

import re
import shlex
from dataclasses import MISSING
from pathlib import Path

import pytest

from benchmarks.pictures import DRAWN
from skillc_lab.cli.main import command_names, find_command, split_command
from skillc_lab.cli.options import options_of, parse
from skillc_lab.cli.tables import completed, renewed

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted((ROOT / "docs").rglob("*.md"))
TESTS = sorted((ROOT / "tests").rglob("test_*.py"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path):
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8")):
        if not target.startswith("https://"):
            assert (page.parent / target).exists() or Path(target).stem in {Path(name).name for name in DRAWN}, target


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*/*.md")), ids=lambda page: page.name)
def test_python_is_run_by_a_test(page: Path):
    """In a folder; `test_python_blocks` runs those of all other pages."""
    if re.search(r"^```python$", page.read_text(encoding="utf-8"), re.MULTILINE):
        assert any(f'"{page.name}"' in path.read_text(encoding="utf-8") for path in TESTS), f"no test names {page.name}"


def test_every_page_is_on_the_map():
    linked = set(re.findall(r"\]\(([\w-]+\.md)\)", (ROOT / "docs" / "index.md").read_text(encoding="utf-8")))
    assert linked == {page.name for page in (ROOT / "docs").glob("*.md")} - {"index.md"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_and_targets_exist(page: Path):
    text = page.read_text(encoding="utf-8")
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(re.findall(r"(?:^|`)make ([a-z][\w-]*)", text, re.MULTILINE)) <= set(targets)
    for folder, name in re.findall(r"\b(scripts|benchmarks)[./](\w+)", text):
        assert any((ROOT / folder / place).exists() for place in (f"{name}.py", name, f"{name}/__init__.py")), name
    for name in re.findall(r"`((?:skillc_gym|trainers|skill_library)(?:\.[a-z_]+)+)(?:\.[A-Za-z]\w*)?`", text):
        place = ROOT / name.replace(".", "/")
        parent = place.parent
        assert (
            place.exists()
            or any(path.with_suffix(".py").exists() for path in (place, parent))
            or (parent / "__init__.py").exists()
        ), name


def commands() -> list[tuple[str, str]]:
    """Every ``skillc`` line and quoted command of README and documentation, with its page."""
    found = []
    for page in [ROOT / "README.md", *PAGES]:
        text = page.read_text(encoding="utf-8").replace("\\\n", " ")
        blocks = "\n".join(re.findall(r"^```(?:bash)?\n(.*?)^```", text, re.DOTALL | re.MULTILINE))
        quoted = re.findall(r"`(skillc [^`]+)`", text)
        lines = [line.split("  #")[0].strip() for line in blocks.splitlines()]
        found += [(page.name, line) for line in [*lines, *quoted] if line.startswith("skillc ")]
    return sorted({(page, part) for page, line in found for part in line.split(" && ") if part.startswith("skillc ")})


@pytest.mark.parametrize(("page", "line"), commands())
def test_skillc_lines_are_understood(page: str, line: str):
    typed = shlex.split(line.removesuffix("...").removeprefix("skillc "))
    typed = [*typed[1:], "--help"] if typed[0] == "help" else typed
    if typed[0] in ("COMMAND", "--help") or typed == ["tools"] or typed[0].endswith(":"):
        return
    name, words = split_command(typed)
    options = find_command(name).options
    if words and not {"--help", "--help-all"}.intersection(words):
        required = [option for option in options_of(options).values() if option.default is MISSING]
        given = [f"{option.name}=x" for option in required] if line.endswith("...") else []
        parse(options, [*given, *words], f"skillc {name}")


def test_the_page_of_commands_names_commands_only():
    """What it leaves out is added when the site is built, so a new command needs no page."""
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `skillc ((?:tools )?[\w-]+)", page, re.MULTILINE)) <= set(command_names())
    assert "| `skillc play` |" in completed("| `skillc plan` | x | y |\n\nz")


def test_the_tables_of_settings_are_those_of_the_doc_strings():
    page = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    assert page == renewed(page), "python -m skillc_lab.cli.tables makes them again"
