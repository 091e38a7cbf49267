"""README and documentation: every page has its place, every shell line can be typed, links lead where they should."""

import importlib.util
import json
import os
import re
import shlex
import tomllib
from collections.abc import Callable
from dataclasses import MISSING
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from benchmarks.measuring import RECORDS
from benchmarks.pages import executed, filled_in
from benchmarks.pictures import DRAWN
from skillc_lab.cli.help import completed
from skillc_lab.cli.main import command_names, find_command, split_command
from skillc_lab.cli.options import options_of, parse

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"^([\w-]+):", MAKEFILE, re.MULTILINE))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_every_page_is_on_the_map_and_has_a_place_in_the_navigation():
    linked = set(re.findall(r"\]\(([\w-]+\.md)\)", (DOCS / "index.md").read_text(encoding="utf-8")))
    assert linked == {page.name for page in DOCS.glob("*.md")} - {"index.md"}
    placed = set(re.findall(r"([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE))
    assert {str(page.relative_to(DOCS)) for page in PAGES[1:]} - placed == set()
    made = {page for page in placed if page.startswith("notebooks/")}
    assert made == {f"notebooks/{path.stem}.md" for path in NOTEBOOKS}


TOOL = r"\b(?:scripts|benchmarks)[./]\w+"
MODULE = r"`((?:skillc_gym|trainers|skill_library)(?:\.[a-z_]+)+)(?:\.[A-Za-z]\w*)?`"
OWN_FILE = r"\b(?:skillc_gym|trainers|skillc_lab|benchmarks|scripts|tests|skill_library)/[\w/.-]*(?:/|\.\w+)(?=[`)\s])"


def tool_is_there(name: str) -> bool:
    place = ROOT / name.replace(".", "/")
    return place.exists() or any(place.parent.glob(f"{place.name}.*"))


def module_is_there(name: str) -> bool:
    """A module, a package, or a name in one of them."""
    place = ROOT / name.replace(".", "/")
    files = (place, place.with_suffix(".py"), place.parent.with_suffix(".py"), place.parent / "__init__.py")
    return any(file.exists() for file in files)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_targets_modules_and_files_that_a_page_names_are_there(page: Path):
    """Pages of records name files of their own revisions."""
    text = page.read_text(encoding="utf-8")
    assert set(re.findall(r"(?:^|`)make ([a-z][\w-]*)", text, re.MULTILINE)) <= TARGETS
    files = [] if page.parent.name == "records" else re.findall(OWN_FILE, text)
    lost = [name for name in files if not (ROOT / name).exists()]
    lost += [name for name in re.findall(TOOL, text) if not tool_is_there(name)]
    lost += [name for name in re.findall(MODULE, text) if not module_is_there(name)]
    assert lost == []


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
    **dict.fromkeys(
        (".", "export", "mkdir", "chmod", "apt-get", "tensorboard", "transformers", "vf-eval", "openenv"),
        lambda line: None,
    ),
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
    page = (DOCS / "commands.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `skillc ((?:tools )?[\w-]+)", page, re.MULTILINE)) <= set(command_names())
    assert "| `skillc play` |" in completed("| `skillc plan` | x | y |\n\nz")
    short = completed("| `skillc tools card`, `tag-nouns FOLDER` | x | y |\n")
    assert "tag-nouns`" not in short, "a row may name several"
    assert "| `skillc tools make-games` |" in short


# The site -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def site() -> ModuleType:
    pytest.importorskip("mkdocs", reason="needs the docs extra")
    spec = importlib.util.spec_from_file_location("site_pages", DOCS / "site_pages.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def page_at(place: str) -> Any:
    return SimpleNamespace(file=SimpleNamespace(src_uri=place), meta={})


def test_a_link_leads_to_a_file_that_becomes_a_page():
    made = {"README.md", "SECURITY.md", "CHANGELOG.md", "CONTRIBUTING.md"}
    lost = []
    for page in PAGES:
        text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for link in re.findall(r"\]\(([^)#\s:]+)(?:#[^)]*)?\)", text):
            target = (page.parent / link).resolve()
            placed = any(map(target.is_relative_to, (DOCS, RECORDS))) or str(target.relative_to(ROOT)) in made
            in_the_site = page.parent == ROOT or placed
            drawn = target.is_relative_to(DOCS / "pictures") and target.stem in {Path(name).name for name in DRAWN}
            if not ((target.exists() and in_the_site) or drawn):
                lost.append(f"{page.name}: {link}")
    assert not lost, "make docs takes those of docs/ for errors"


def places_in(page: Path) -> set[str]:
    """What a link may name behind its `#`: named anchors, and headings as the site and code hosts spell them."""
    text = page.read_text(encoding="utf-8")
    headings = [re.sub(r"[^\w\s-]", "", line.lower()).strip() for line in re.findall(r"^#+ (.+)$", text, re.MULTILINE)]
    return {*re.findall(r'<a id="([^"]+)">', text), *(re.sub(r"\s", "-", heading) for heading in headings)}


def test_a_link_into_a_page_leads_to_a_place_that_is_there():
    lost = []
    for page in PAGES:
        for link, place in re.findall(r"\]\(((?:[^)#\s:]+\.md)?)#([^)\s]+)\)", page.read_text(encoding="utf-8")):
            if place not in places_in((page.parent / link).resolve() if link else page):
                lost.append(f"{page.name}: {link}#{place}")
    assert not lost, "make docs takes them for errors"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_top_to_bottom_to_what_it_shows(path: Path):
    saved = json.loads(path.read_text(encoding="utf-8"))
    assert executed(saved) == saved, "python -m benchmarks.pages --write"


def test_a_notebook_becomes_a_page(site: ModuleType):
    cells = [
        {"cell_type": "markdown", "source": ["# Title"]},
        {"cell_type": "code", "source": ["print(1)"], "outputs": [{"text": ["1\n"]}]},
        {"cell_type": "code", "source": ["x = 1"], "outputs": []},
    ]
    page = site.notebook_page({"cells": cells})
    assert page == "# Title\n\n```python\nprint(1)\n```\n\n```text\n1\n```\n\n```python\nx = 1\n```"


@pytest.mark.parametrize(
    ("page", "text", "expected"),
    [
        ("readme.md", "[a](docs/skills.md) [b](CHANGELOG.md)", "[a](skills.md) [b](changes.md)"),
        ("index.md", "[a](../README.md) [b](skills.md)", "[a](readme.md) [b](skills.md)"),
        ("records/shop.md", "[a](../../benchmarks/records/fuzz.json)", "[a](fuzz.json)"),
        ("adapters/gone.md", "[a](../../benchmarks/records/fuzz.json)", "[a](../records/fuzz.json)"),
    ],
)
def test_links_of_the_root_and_to_records_lead_into_the_site(site: ModuleType, page: str, text: str, expected: str):
    assert site.on_page_markdown(text, page_at(page), None, None) == expected


@pytest.mark.parametrize("page", PAGES[1:], ids=lambda page: page.stem)
def test_tables_of_pages_are_those_of_the_records(page: Path):
    """And nothing of a template or of an anchor's form is seen where a code host shows the page."""
    text = page.read_text(encoding="utf-8")
    assert filled_in(text) == text, "python -m benchmarks.pages --write"
    assert not re.search(r"\{\{|\{%|\{#", re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL))


def test_the_reference_has_every_public_module_folded_and_behind_the_guides(site: ModuleType):
    rooms = site.rooms()
    assert "skillc_gym.wrappers.skill_injection" in rooms["skillc_gym.wrappers"]
    assert set(rooms) >= {"skill_library", "skillc_gym", "trainers", "trainers.advantages"}
    assert site.reference_page("a", ["a.b"]) == "# a\n\n::: a.b"
    nav = [{"How-to": ["skills.md"]}, {"Reference": ["commands.md"]}]
    config = site.on_config(SimpleNamespace(nav=nav))
    assert config.nav[1]["Reference"][1]["API"][0] == {"skill_library": "reference/skill_library.md"}
    shown = page_at("reference/trainers.md")
    site.on_page_markdown("# trainers", shown, None, None)
    assert shown.meta["search"]["boost"] < 0.5


def test_the_home_page_begins_as_readme_does(site: ModuleType):
    home = site.on_page_markdown((DOCS / "index.md").read_text(encoding="utf-8"), page_at("index.md"), None, None)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert readme.split("\n\n")[1] in home
    assert "](pictures/hero.png){ .wide }" in home
    assert "](docs/" not in home


def test_a_figure_and_its_interval_stay_on_one_line(site: ModuleType):
    html = site.on_page_content("<td>+60 [+29, +91]: better</td>", page_at("records/shop.md"), None, None)
    assert "<td>+60&nbsp;[+29,&nbsp;+91]: better</td>" in html
