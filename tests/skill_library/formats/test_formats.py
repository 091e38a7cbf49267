"""Skills in other forms: what is read, what is written, and that nothing is lost between."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_library import Skill, SkillFileError
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


BANK = {
    "general_skills": [
        {"skill_id": "gen_001", "title": "Search", "principle": "Look everywhere once.", "when_to_apply": "At first."},
        {"skill_id": "gen_002", "title": "Check", "principle": "Two lines:\nboth count."},
    ],
    "task_specific_skills": {"heat": [{"skill_id": "heat_001", "title": "Heat", "principle": "Use the microwave."}]},
    "common_mistakes": [
        {
            "mistake_id": "err_001",
            "description": "Goes in circles.",
            "why_it_happens": "It forgets.",
            "how_to_avoid": "Count the places.",
        }
    ],
}


def test_a_bank_is_read_and_written_back_entry_by_entry():
    skills = read_bank(BANK)
    assert [(skill.name, skill.task_types) for skill in skills] == [
        ("gen_001", ("*",)),
        ("gen_002", ("*",)),
        ("heat_001", ("heat",)),
        ("err_001", ("*",)),
    ]
    assert skills[0].text == "Search\nLook everywhere once.\nApply when: At first."
    assert skills[3].text == "Mistake: Goes in circles.\nWhy: It forgets.\nInstead: Count the places."
    assert to_bank(skills) == BANK


@given(
    st.lists(
        st.fixed_dictionaries({"title": LINE, "principle": LINE, "when_to_apply": LINE}), min_size=1, max_size=3
    ).map(lambda entries: [{"skill_id": f"s{n}", **entry} for n, entry in enumerate(entries)])
)
def test_any_entries_come_back(entries):
    bank = {"general_skills": entries, "task_specific_skills": {}, "common_mistakes": []}
    assert to_bank(read_bank(bank)) == bank


@given(skills=libraries())
def test_skills_of_any_origin_can_be_put_into_a_bank(skills):
    bank = json.loads(json.dumps(to_bank(skills)))
    again = read_bank(bank)
    assert {kind for skill in again for kind in skill.task_types} == {k for skill in skills for k in skill.task_types}
    for skill in skills:
        assert any(skill.text.split("\n")[0] in other.text for other in again)


def test_entries_without_ids_get_names():
    skills = read_bank({"general_skills": [{"principle": "a"}, {"skill_id": "../x", "principle": "b"}]})
    assert [skill.name for skill in skills] == ["general-1", "x"]


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


@given(skills=libraries())
def test_the_built_in_texts_survive_sections(skills):
    single = [skill for skill in skills if len(skill.task_types) == 1]
    if single:
        again = read_sections(to_sections(single))
        assert [(s.task_types, s.text) for s in again] == [(s.task_types, s.text) for s in single]


def test_what_sections_cannot_tell_is_refused():
    types = [("x", "y"), ("common_sense",), ("General x",), (" x",), ("x ",)]
    for skill in (Skill("a", "d", ("x",), "### b ###"), *(Skill("a", "d", kinds, "text") for kinds in types)):
        with pytest.raises(SkillFileError, match="folders"):
            to_sections([skill])


def agent_skill(folder: Path, front: str = "name: a\ndescription: d", body: str = "Do it.") -> Path:
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(f"---\n{front}\n---\n{body}\n", encoding="utf-8")
    return folder


def test_the_ecosystems_skills_are_read(tmp_path):
    front = "name: pdf-tools\ndescription: Use when a PDF comes.\nlicense: MIT\nmetadata:\n  version: 1.0\n  author: x"
    folder = agent_skill(tmp_path / "pdf-tools", front)
    references = folder / "references"
    references.mkdir()
    (references / "b.md").write_text("B\n")
    (references / "a.txt").write_text("A\n")
    (references / "image.png").write_bytes(b"\x00")
    (skill,) = read_agent_skills(folder)
    assert skill == Skill("pdf-tools", "Use when a PDF comes.", ("*",), "Do it.")
    (more,) = read_agent_skills(tmp_path, references=True)
    assert more.text == "Do it.\n\n## references/a.txt\n\nA\n\n## references/b.md\n\nB"


@pytest.mark.parametrize(
    ("metadata", "name", "types"),
    [
        ('{task_types: "heat, cool", library_name: A B}', "A B", ("heat", "cool")),
        *((f"{{task_types: {nothing}, library_name: {nothing}}}", "a", ("*",)) for nothing in ("null", "~", "")),
    ],
)
def test_types_and_name_are_kept_in_the_metadata(tmp_path, metadata, name, types):
    agent_skill(tmp_path / "a", f"name: a\ndescription: d\nmetadata: {metadata}")
    (skill,) = read_agent_skills(tmp_path)
    assert (skill.name, skill.task_types) == (name, types)


@pytest.mark.parametrize(
    "data",
    [
        [],
        {},
        {"general_skills": {}},
        {"general_skills": ["x"]},
        {"general_skills": [{"title": "x"}]},
        {"general_skills": [{"principle": 3}]},
        {"task_specific_skills": [1]},
        {"common_mistakes": [{"description": "x"}]},
    ],
)
def test_what_is_no_bank_is_refused(data):
    with pytest.raises(SkillFileError):
        read_bank(data)


def test_nothing_is_overwritten(tmp_path):
    (tmp_path / "x").write_text("mine")
    with pytest.raises(SkillFileError, match="not empty"):
        write_library(read_bank(BANK), tmp_path)
    with pytest.raises(SkillFileError, match="cannot be made"):
        write_library(read_bank(BANK), tmp_path / "x")


@pytest.mark.parametrize(
    "skills",
    [
        [Skill("a", "d", ("*",), "x" * 262_144)],
        [Skill("a", "d", ("*",), "x" * 20_000, "y" * 17_000)],
        [Skill(f"s{number}", "d", ("*",), "x") for number in range(1_001)],
    ],
    ids=["text", "front matter", "number"],
)
def test_what_could_not_be_read_back_is_not_written(skills, tmp_path):
    with pytest.raises(SkillFileError, match=r"could not be read back|at most 1,000"):
        write_library(skills, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_types_are_renamed():
    skills = read_bank(BANK)
    types = {"heat": ("pick_heat",), "gen_002": ("pick_heat", "pick_cool")}
    assert [skill.task_types for skill in assign_types(skills, types)] == [
        ("*",),
        ("pick_heat", "pick_cool"),
        ("pick_heat",),
        ("*",),
    ]
    assert assign_types(skills, {"heat": ("*",)})[2].is_general
    with pytest.raises(SkillFileError, match=r"heat=TYPE"):
        assign_types(skills, {"cool": ("x",)})


# Of strangers: what would take quadratic time is refused or read at once.


def test_a_line_of_blanks_is_read_at_once():
    text = f"### a ###\ntext\n### b{' ' * 200_000}x\n###{' ' * 200_000}\n"
    (skill,) = read_sections(text)
    assert skill.text.startswith("text\n### b")


@pytest.mark.parametrize("head", ["### a b ###", "###  a b\t### ", "### a b   ###\t"])
def test_heads_are_read_as_they_were(head):
    (skill,) = read_sections(f"{head}\ntext\n")
    assert (skill.name, skill.task_types) == ("a_b", ("a b",))
    (other,) = read_sections("### a ### b ###\ntext")
    assert other.task_types == ("a ### b",)


def test_more_skills_than_a_library_has_are_refused():
    with pytest.raises(SkillFileError, match="at most 1,000"):
        read_sections("### a ###\nx\n" * 50_000)
    entries = [{"skill_id": "a", "principle": "p"}] * 50_000
    with pytest.raises(SkillFileError, match="at most 1,000"):
        read_bank({"general_skills": entries})
    with pytest.raises(SkillFileError, match="at most 1,000"):
        read_bank({"task_specific_skills": {"heat": entries}})


def test_a_text_like_half_a_mistake_is_written_at_once():
    skill = Skill("a", "d", ("*",), "Mistake: " + "\nWhy: x" * 100_000)
    assert to_bank([skill])["common_mistakes"] == []
    assert to_sections([skill])


def test_a_linked_skill_may_not_lie_outside_what_is_read(tmp_path):
    secret, root = agent_skill(tmp_path / "secret"), agent_skill(tmp_path / "skills" / "own").parent
    (root / "within").symlink_to(root / "own")
    assert len(read_agent_skills(root)) == 2
    (root / "linked").symlink_to(secret)
    with pytest.raises(SkillFileError, match="link that leads out"):
        read_agent_skills(root)


def test_linked_references_may_not_lie_outside_what_is_read(tmp_path):
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "key.txt").write_text("secret")
    skill = agent_skill(tmp_path / "skills" / "own")
    (skill / "references").symlink_to(tmp_path / "secrets")
    for root in (skill, skill.parent):
        with pytest.raises(SkillFileError, match=r"key\.txt is a link that leads out"):
            read_agent_skills(root, references=True)


def test_more_text_than_a_library_has_is_refused(tmp_path):
    quarter = MAX_CHARACTERS // 4 + 1
    with pytest.raises(SkillFileError, match="4,194,304 characters"):
        read_bank({"general_skills": [{"skill_id": f"a{n}", "principle": "p" * quarter} for n in range(4)]})
    with pytest.raises(SkillFileError, match="4,194,304 characters"):
        read_sections(f"### a ###\n{'x' * MAX_CHARACTERS}x\n")
    references = agent_skill(tmp_path / "a") / "references"
    references.mkdir()
    for number in range(17):
        (references / f"{number}.md").write_text("r" * 250_000)
    with pytest.raises(SkillFileError, match="4,194,304 characters"):
        read_agent_skills(tmp_path, references=True)
