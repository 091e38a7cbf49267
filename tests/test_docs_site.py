"""The documentation site: every page has its place, notebooks run, links lead from the root into the site."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from benchmarks.measuring import RECORDS
from benchmarks.pages import executed, filled_in
from benchmarks.pictures import DRAWN

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PATHS = sorted((DOCS / "notebooks").glob("*.ipynb"))


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


def test_every_page_has_a_place_in_the_navigation():
    placed = set(re.findall(r"([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE))
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}
    missing = pages - placed
    assert not missing, f"mkdocs.yml's navigation lacks {sorted(missing)}"
    assert {page for page in placed if page.startswith("notebooks/")} == {f"notebooks/{path.stem}.md" for path in PATHS}


def test_a_link_leads_to_a_file_that_becomes_a_page():
    made = {"README.md", "SECURITY.md", "CHANGELOG.md", "CONTRIBUTING.md"}
    lost = []
    for page in [ROOT / "README.md", *DOCS.rglob("*.md")]:
        text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for link in re.findall(r"\]\(([^)#\s:]+)(?:#[^)]*)?\)", text):
            target = (page.parent / link).resolve()
            in_the_site = (
                page.parent == ROOT
                or any(map(target.is_relative_to, (DOCS, RECORDS)))
                or str(target.relative_to(ROOT)) in made
            )
            drawn = target.is_relative_to(DOCS / "pictures") and target.stem in {Path(name).name for name in DRAWN}
            if not ((target.exists() and in_the_site) or drawn):
                lost.append(f"{page.name}: {link}")
    assert not lost, "make docs takes those of docs/ for errors"


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
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


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: page.stem)
def test_tables_of_pages_are_those_of_the_records(page: Path):
    """And nothing of a template or of an anchor's form is seen where a code host shows the page."""
    text = page.read_text(encoding="utf-8")
    assert filled_in(text) == text, "python -m benchmarks.pages --write"
    assert not re.search(r"\{\{|\{%|\{#", re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL))


def test_the_reference_has_every_public_module(site: ModuleType):
    rooms = site.rooms()
    assert "skillc_gym.wrappers.skill_injection" in rooms["skillc_gym.wrappers"]
    assert set(rooms) >= {"skill_library", "skillc_gym", "trainers", "trainers.advantages"}
    assert site.reference_page("a", ["a.b"]) == "# a\n\n::: a.b"


def test_the_api_stands_folded_in_the_reference_and_behind_the_guides(site: ModuleType):
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


def test_the_map_for_machines_has_each_page_by_section_with_its_first_sentence(site: ModuleType):
    nav = [{"Home": "index.md"}, {"Guides": ["a.md", {"More": [{"Two": "b.md"}]}, "gone.md"]}]
    pages = {
        "index.md": "# S\n\nHome.",
        "a.md": "# One\n\nIt [does](b.md) **1.5** things. More.",
        "b.md": "# B\n\n## C\n\nD.",
    }
    text = site.llms_page("# S\n\nWhat it is.\n\nMore.", nav, pages)
    assert text.startswith("# skillc-gym\n\n> What it is.\n\n## Home")
    assert text.endswith("## Guides\n\n- [One](a.md): It does 1.5 things.\n- [Two](b.md)\n")
