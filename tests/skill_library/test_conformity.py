"""Skills of the specification (agentskills.io): ours pass its validator, and those of others load as they are."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skill_library import Skill, SkillFileError, load_library
from skill_library.formats import read_agent_skills, write_library

ROOT = Path(__file__).parents[2]
THEIRS = """---
name: kitchen-helper
description: Finds and warms things. Use when a meal is asked for.
license: Apache-2.0
compatibility: Requires a kitchen
allowed-tools: Bash(git:*) Read
metadata:
  author: example-org
  version: "1.0"
---

# Kitchen helper

Look into the fridge first. See [the guide](references/GUIDE.md).
"""


def complaints(folder: Path) -> dict[str, list[str]]:
    """What the specification's own validator says of each skill below a folder."""
    validator = pytest.importorskip("skills_ref.validator", reason="skills-ref is not installed (extra dev)")
    found = {str(file.parent): validator.validate(file.parent) for file in sorted(folder.glob("**/SKILL.md"))}
    assert found
    return {name: said for name, said in found.items() if said}


@pytest.mark.parametrize("package", ["skill_library", "skillc_gym"])
def test_every_skill_that_comes_with_the_package_is_valid(package: str) -> None:
    assert complaints(ROOT / package) == {}


@pytest.mark.parametrize(
    ("library", "sha256"),
    [
        ("alfworld", "5cafced0ab64886076819fb3712c7f38a318b7b444276ca5056667853050c0d1"),
        ("webshop", "c306ed76305cc8693737e7bdc1c668f743ee8243400d81fc2ef5cbfa802255ea"),
        (ROOT / "skillc_gym/envs/coins/skills", "4c21a6353e519318f51e677554dddb1e331be1cbe0e6ee1cb42c3fb5a033806c"),
    ],
)
def test_what_agents_read_has_not_changed_by_a_byte(library: str | Path, sha256: str) -> None:
    """Recorded results are of these texts; a change is a new version."""
    assert load_library(library).sha256 == sha256


TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=60).filter(str.strip)


@settings(max_examples=60)
@given(
    names=st.lists(st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9 _-]{0,62}[a-z])?", fullmatch=True), min_size=1, max_size=3),
    description=st.sampled_from(["--- ---- -----", "a: b # c", "\u2028x"]) | TEXT,
    kinds=st.just(("*",)) | st.just(("heat", "cool")),
    text=st.lists(TEXT, min_size=1, max_size=4).map("\n".join),
)
def test_every_skill_that_is_written_is_valid_and_comes_back(
    names: list[str], description: str, kinds: tuple[str, ...], text: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    alike = {name.lower(): name for name in [*names, f"{names[0][:60]}_x", f"{names[0][:60]}-x"]}
    said, read = description.strip(), text.strip()
    skills = [Skill(name, said, kinds, read, read[:1].strip()) for name in alike.values()]
    folder = write_library(skills, tmp_path_factory.mktemp("skills") / "own")
    assert sorted(load_library(folder).skills, key=str) == sorted(skills, key=str)
    assert sorted(read_agent_skills(folder), key=str) == sorted(skills, key=str)
    assert complaints(folder) == {}


@pytest.mark.parametrize("description", ["", " ", "d" * 1025])
def test_a_description_that_the_specification_refuses_is_not_written(tmp_path: Path, description: str) -> None:
    with pytest.raises(SkillFileError, match="wants 1 to 1,024"):
        write_library([Skill("a", description, ("*",), "Do it.")], tmp_path / "own")
    assert not (tmp_path / "own").exists()


def test_a_skill_of_others_loads_as_it_is_and_serves_every_type(tmp_path: Path) -> None:
    one = tmp_path / "skills" / "kitchen-helper"
    (one / "scripts").mkdir(parents=True)
    (one / "scripts" / "run.sh").write_text("exit 1\n")
    (one / "SKILL.md").write_text(THEIRS, encoding="utf-8")
    for folder in (one, one.parent):
        library = load_library(folder)
        shown = library.for_task("pick_heat_then_place_in_recep")
        assert shown.name == "kitchen-helper"
        assert shown.text == THEIRS.split("---\n", 2)[2].strip()
        assert library.longest == len(shown.text)
    assert complaints(one.parent) == {}
