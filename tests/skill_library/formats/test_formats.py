"""Skills in other forms: nothing is lost between, ours pass the specification's validator, strangers' cost little."""

import itertools
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skill_library import Skill, SkillFileError, load_library
from skill_library.formats import (
    assign_types,
    read_agent_skills,
    read_bank,
    read_sections,
    to_bank,
    to_sections,
    write_library,
)
from skill_library.skill import MAX_CHARACTERS

LINE = (
    st.text(st.characters(min_codepoint=32, max_codepoint=0x2FF, exclude_characters="\x7f\x85"), min_size=1)
    .map(str.strip)
    .filter(lambda line: line and line == " ".join(line.split()))
)
TYPE = st.from_regex(r"[a-z_]{1,20}", fullmatch=True)
NAME = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9 _-]{0,30}", fullmatch=True).map(str.strip)


@st.composite
def libraries(draw):
    names = draw(st.lists(NAME, min_size=1, max_size=4, unique_by=str.lower))
    text = st.lists(LINE, min_size=1, max_size=4).map("\n".join)
    kinds = st.just(("*",)) | st.lists(TYPE, min_size=1, max_size=2, unique=True).map(tuple)
    return [Skill(name, draw(LINE), draw(kinds), draw(text)) for name in names]


SEARCH = {"skill_id": "gen_001", "title": "Search", "principle": "Look everywhere.", "when_to_apply": "At first."}
CIRCLES = {"description": "Goes in circles.", "why_it_happens": "It forgets.", "how_to_avoid": "Count the places."}
BANK = {
    "general_skills": [SEARCH, {"skill_id": "gen_002", "title": "Check", "principle": "Two lines:\nboth count."}],
    "task_specific_skills": {"heat": [{"skill_id": "heat_001", "title": "Heat", "principle": "Use the microwave."}]},
    "common_mistakes": [{"mistake_id": "err_001", **CIRCLES}],
}


def test_a_bank_is_read_and_written_back_entry_by_entry():
    skills = read_bank(BANK)
    assert [skill.name for skill in skills] == ["gen_001", "gen_002", "heat_001", "err_001"]
    assert [skill.task_types for skill in skills] == [("*",), ("*",), ("heat",), ("*",)]
    assert skills[0].text == "Search\nLook everywhere.\nApply when: At first."
    assert skills[3].text == "Mistake: Goes in circles.\nWhy: It forgets.\nInstead: Count the places."
    assert to_bank(skills) == BANK
    named = read_bank({"general_skills": [{"principle": "a"}, {"skill_id": "../x", "principle": "b"}]})
    assert [skill.name for skill in named] == ["general-1", "x"]
    with pytest.warns(UserWarning, match="not read: 'examples'"):
        read_bank({"general_skills": [{**SEARCH, "examples": ["a"]}]})


@given(name=st.sampled_from(["s1", "gen.001"]), title=LINE | st.just("gen.001"), principle=LINE, when=LINE)
def test_any_entry_comes_back(name, title, principle, when):
    entry = {"skill_id": name, "title": title, "principle": principle, "when_to_apply": when}
    bank = {"general_skills": [entry], "task_specific_skills": {}, "common_mistakes": []}
    assert to_bank(read_bank(bank)) == bank


@given(skills=libraries())
def test_skills_of_any_origin_can_be_put_into_a_bank(skills):
    again = read_bank(json.loads(json.dumps(to_bank(skills))))
    assert {kind for skill in again for kind in skill.task_types} == {k for skill in skills for k in skill.task_types}
    for skill in skills:
        assert any(skill.text.split("\n")[0] in other.text for other in again)


@pytest.mark.parametrize(
    "skill",
    [
        Skill("heat", "When the oven is broken.", ("heat",), "Heating.\n1. Take O.\nApply when: something is cold"),
        Skill("heat", "Heating.", ("heat",), "Heating.\n\n    code\n1. Take O."),
        Skill("heat", "Heating", ("heat",), "Heating\n\nApply when: cold"),
        Skill("circles", "Of going in circles.", ("*",), "Mistake: goes in circles\nInstead: count the places"),
    ],
)
def test_a_text_that_looks_like_an_entry_loses_nothing(skill):
    (again,) = read_bank(to_bank([skill]))
    assert skill.text in again.text
    assert skill.description in f"{again.description} {again.text}"


def test_the_beginning_of_a_long_mistake_describes_it(tmp_path):
    mistake = {"mistake_id": "m1", "description": "a" * 1023 + " b" * 20, "how_to_avoid": "y"}
    skills = read_bank({"common_mistakes": [mistake]})
    assert load_library(write_library(skills, tmp_path / "l")).skills[0].description == "a" * 1023
    assert to_bank(skills)["common_mistakes"] == [mistake]


@pytest.mark.parametrize(
    "data", [[], {"general_skills": ["x"]}, {"general_skills": [{"title": "x"}]}, {"task_specific_skills": [1]}]
)
def test_what_is_no_bank_is_refused(data):
    with pytest.raises(SkillFileError):
        read_bank(data)


def test_types_are_renamed():
    skills = read_bank(BANK)
    types = {"heat": ("pick_heat",), "gen_002": ("pick_heat", "pick_cool")}
    renamed = [skill.task_types for skill in assign_types(skills, types)]
    assert renamed == [("*",), ("pick_heat", "pick_cool"), ("pick_heat",), ("*",)]
    assert assign_types(skills, {"heat": ("*",)})[2].is_general
    alike = [Skill("heat", "d", ("heat", "cool"), "x"), Skill("cool", "d", ("*",), "y")]
    kinds = {"heat": ("pick_heat",), "cool": ("pick_cool",)}
    found = [skill.task_types for skill in assign_types(alike, kinds, {})]
    assert found == [("pick_heat", "pick_cool"), ("*",)], "a skill that is called as a type keeps its own"
    with pytest.raises(SkillFileError, match=r"heat=TYPE"):
        assign_types(skills, {"cool": ("x",)})


SECTIONS = """### GENERAL SKILLS ###
Look once.

### pick_and_place ###
Take it.
Put it down.

### empty ###

### Heat & serve ###
Use the microwave.
"""


def test_sections_are_read():
    skills = read_sections(SECTIONS.replace("\n", "\r\n"))
    assert [(skill.name, skill.task_types, skill.text) for skill in skills] == [
        ("general_skills", ("*",), "Look once."),
        ("pick_and_place", ("pick_and_place",), "Take it.\nPut it down."),
        ("heat_serve", ("Heat & serve",), "Use the microwave."),
    ]
    assert read_sections("Before.\n" + SECTIONS)[0].text == "Before."
    for head, kind in (("###  a b\t### ", "a b"), ("### a b   ###\t", "a b"), ("### a ### b ###", "a ### b")):
        assert read_sections(f"{head}\ntext\n")[0].task_types == (kind,)


@given(skills=libraries())
def test_skills_of_one_type_survive_sections(skills):
    single = [skill for skill in skills if len(skill.task_types) == 1]
    if single:
        again = read_sections(to_sections(single))
        assert [(s.task_types, s.text) for s in again] == [(s.task_types, s.text) for s in single]


@pytest.mark.parametrize("write", [to_bank, to_sections])
def test_a_skill_that_says_nothing_is_refused(write):
    with pytest.raises(SkillFileError, match="'heat' has no text"):
        write([Skill("heat", "Of heat.", ("heat",), "")])


def test_what_sections_cannot_tell_is_refused():
    with pytest.raises(SkillFileError, match="no skills to write"):
        to_sections([])
    types = [("x", "y"), ("common_sense",), ("General x",), (" x",), ("x ",)]
    for skill in (Skill("a", "d", ("x",), "### b ###"), *(Skill("a", "d", kinds, "text") for kinds in types)):
        with pytest.raises(SkillFileError, match="folders"):
            to_sections([skill])


# Of the specification (agentskills.io) -------------------------------------------------------------------------------


def complaints(folder: Path) -> dict[str, list[str]]:
    """What the specification's own validator says of each skill below a folder."""
    validator = pytest.importorskip("skills_ref.validator", reason="skills-ref is not installed (extra dev)")
    found = {str(file.parent): validator.validate(file.parent) for file in sorted(folder.glob("**/SKILL.md"))}
    assert found
    return {name: said for name, said in found.items() if said}


@pytest.mark.parametrize("package", ["skill_library", "skillc_gym"])
def test_every_skill_that_comes_with_the_package_is_valid(package):
    assert complaints(Path(__file__).parents[3] / package) == {}


TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=60).filter(str.strip)


@settings(max_examples=60)
@given(
    names=st.lists(st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9 _-]{0,62}[a-z])?", fullmatch=True), min_size=1, max_size=3),
    description=st.sampled_from(["--- ---- -----", "a: b # c", "\u2028x"]) | TEXT,
    kinds=st.just(("*",)) | st.just(("heat", "cool")),
    text=st.lists(TEXT, min_size=1, max_size=4).map("\n".join),
)
def test_every_skill_that_is_written_is_valid_and_comes_back(names, description, kinds, text, tmp_path_factory):
    alike = {name.lower(): name for name in [*names, f"{names[0][:60]}_x", f"{names[0][:60]}-x"]}
    said, read = description.strip(), text.strip()
    skills = [Skill(name, said, kinds, read, read[:1].strip()) for name in alike.values()]
    folder = write_library(skills, tmp_path_factory.mktemp("skills") / "own")
    assert sorted(load_library(folder).skills, key=str) == sorted(skills, key=str)
    assert sorted(read_agent_skills(folder), key=str) == sorted(skills, key=str)
    assert complaints(folder) == {}


def agent_skill(folder: Path, front: str = "name: a\ndescription: d", **references: str) -> Path:
    (folder / "references").mkdir(parents=True)
    (folder / "SKILL.md").write_text(f"---\n{front}\n---\n\nDo it.\n", encoding="utf-8")
    for name, text in references.items():
        (folder / "references" / name.replace("_", ".")).write_text(text)
    return folder


def test_skills_of_others_are_read_as_they_are_and_serve_every_type(tmp_path):
    front = "name: pdf-tools\ndescription: Use when a PDF comes.\nlicense: MIT\ncompatibility: Requires a kitchen\n"
    front += 'allowed-tools: Bash(git:*) Read\nmetadata:\n  version: "1.0"\n  author: x'
    folder = agent_skill(tmp_path / "pdf-tools", front, b_md="B\n", a_txt="A\n", image_png="\x00")
    for place in (folder, tmp_path):
        assert read_agent_skills(place) == [Skill("pdf-tools", "Use when a PDF comes.", ("*",), "Do it.")]
        library = load_library(place)
        shown = library.for_task("pick_heat_then_place_in_recep")
        assert (shown.name, shown.text, library.longest) == ("pdf-tools", "Do it.", 6)
    (more,) = read_agent_skills(tmp_path, references=True)
    assert more.text == "Do it.\n\n## references/a.txt\n\nA\n\n## references/b.md\n\nB"
    assert complaints(tmp_path) == {}


def test_nothing_is_overwritten(tmp_path):
    theirs = write_library(read_bank(BANK), tmp_path / "library")
    for place, fault in ((theirs, "not empty"), (theirs / "err-001" / "SKILL.md", "cannot be made")):
        with pytest.raises(SkillFileError, match=fault):
            write_library(read_bank(BANK), place)


@pytest.mark.parametrize(
    ("skills", "fault"),
    [
        ([Skill("a", "d", ("*",), "x" * 262_144)], "could not be read back"),
        ([Skill(f"s{number}", "d", ("*",), "x") for number in range(1_001)], "at most 1,000"),
        *(([Skill("a", "d", ("*",), *texts)], "read back equal") for texts in ([" x "], ["Do this.", "Do it.\n"])),
        *(([Skill("a", said, ("*",), "Do it.")], "wants 1 to 1,024") for said in (" ", "d" * 1025)),
    ],
)
def test_what_would_be_refused_when_it_is_read_is_not_written(skills, fault, tmp_path):
    with pytest.raises(SkillFileError, match=fault):
        write_library(skills, tmp_path / "new")
    assert not (tmp_path / "new").exists()


# Of strangers: what would take quadratic time is refused or read at once ---------------------------------------------


def test_a_line_of_blanks_is_read_and_half_a_mistake_written_at_once():
    (skill,) = read_sections(f"### a ###\ntext\n### b{' ' * 200_000}x\n###{' ' * 200_000}\n")
    assert skill.text.startswith("text\n### b")
    mistaken = Skill("a", "d", ("*",), "Mistake: " + "\nWhy: x" * 100_000)
    assert to_bank([mistaken])["common_mistakes"] == []
    assert to_sections([mistaken])


MANY, LONG = [{"skill_id": "a", "principle": "p"}] * 50_000, {"principle": "p" * (MAX_CHARACTERS // 4 + 1)}


@pytest.mark.parametrize(
    ("read", "data", "fault"),
    [
        (read_sections, "### a ###\nx\n" * 50_000, "at most 1,000"),
        (read_bank, {"task_specific_skills": {"heat": MANY}}, "at most 1,000"),
        (read_bank, {"general_skills": [LONG] * 4}, "4,194,304 characters"),
        (read_sections, f"### a ###\n{'x' * MAX_CHARACTERS}x\n", "4,194,304 characters"),
    ],
    ids=itertools.count(),
)
def test_more_than_a_library_may_hold_is_refused(read, data, fault):
    with pytest.raises(SkillFileError, match=fault):
        read(data)


def test_references_outside_what_is_read_or_of_more_text_than_a_library_has_are_refused(tmp_path):
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "key.txt").write_text("secret")
    skill = agent_skill(tmp_path / "skills" / "own")
    (skill / "references").rmdir()
    (skill / "references").symlink_to(tmp_path / "secrets")
    with pytest.raises(SkillFileError, match=r"key\.txt is a link that leads out"):
        read_agent_skills(skill, references=True)
    long = agent_skill(tmp_path / "long", **{f"{number}_md": "r" * 250_000 for number in range(17)})
    with pytest.raises(SkillFileError, match="4,194,304 characters"):
        read_agent_skills(long, references=True)
