"""The documentation's map: every link leads somewhere, every page is on the map, every command named exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted((ROOT / "docs").rglob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path):
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8")):
        if not target.startswith("https://"):
            assert (page.parent / target).exists(), target


def test_every_page_is_on_the_map():
    linked = set(re.findall(r"\]\(([\w-]+\.md)\)", (ROOT / "docs" / "index.md").read_text(encoding="utf-8")))
    assert linked == {page.name for page in (ROOT / "docs").glob("*.md")} - {"index.md"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_and_targets_exist(page: Path):
    text = page.read_text(encoding="utf-8")
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(re.findall(r"(?:^|`)make ([a-z][\w-]*)", text, re.MULTILINE)) <= set(targets)
    for name in re.findall(r"python -m scripts\.(\w+)", text) + re.findall(r"python scripts/(\w+)\.py", text):
        assert (ROOT / "scripts" / f"{name}.py").exists(), name
    for name in re.findall(r"`((?:skillc_gym|trainers|skill_library)(?:\.[a-z_]+)+)(?:\.[A-Za-z]\w*)?`", text):
        place = ROOT / name.replace(".", "/")
        parent = place.parent
        assert (
            place.exists()
            or any(path.with_suffix(".py").exists() for path in (place, parent))
            or (parent / "__init__.py").exists()
        ), name
