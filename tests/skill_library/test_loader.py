import hashlib

import pytest

from skill_library import SkillFileError, load_library
from skill_library.loader import read_skill

ALFWORLD_TYPES = {
    "pick_and_place_simple": "pick",
    "look_at_obj_in_light": "look",
    "pick_clean_then_place_in_recep": "clean",
    "pick_heat_then_place_in_recep": "heat",
    "pick_cool_then_place_in_recep": "cool",
    "pick_two_obj_and_place": "pick2",
}
GOOD = "---\nname: {name}\ndescription: d\ntask_types: {types}\n---\n{text}\n"


def write(root, folder, content):
    file = root / folder / "SKILL.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


def test_every_alfworld_type_has_a_general_and_an_own_skill():
    library = load_library("alfworld")
    assert set(library.task_types) == set(ALFWORLD_TYPES)
    general = library.skills[0]
    assert general.is_general
    assert general.name == "general"
    for task_type, name in ALFWORLD_TYPES.items():
        skill = library.for_task(task_type)
        own = next(s for s in library.skills if s.name == name)
        assert skill.name == f"general+{name}"
        assert skill.text == f"{general.text}\n\n{own.text}"
        assert skill.sha256 == hashlib.sha256(skill.text.encode()).hexdigest()
    assert library.longest == max(len(library.for_task(kind).text) for kind in library.task_types)


@pytest.mark.parametrize("name", ["alfworld", "webshop"])
def test_the_minimal_grade_keeps_first_line_and_key_step(name):
    library, minimal = load_library(name), load_library(name).graded("minimal")
    for skill, short in zip(library.skills, minimal.skills, strict=True):
        lines = skill.text.splitlines()
        assert short.text.splitlines() == [lines[0], *(line for line in lines if "Key step" in line)]
        assert len(short.text) < len(skill.text)
    kind = library.task_types[0]
    assert minimal.for_task(kind).name == library.for_task(kind).name
    assert library.graded("full") is library
    assert library.graded("none").for_task(kind).text == ""
    with pytest.raises(SkillFileError, match="none, minimal, full"):
        library.graded("some")


def test_a_skill_may_bring_its_own_minimal_text(tmp_path):
    plain = GOOD.format(name="a", types="[x]", text="Do this.\nThen that.")
    write(tmp_path, "a", plain.replace("task_types", "minimal: Do it.\ntask_types"))
    library = load_library(tmp_path)
    assert library.graded("minimal").for_task("x").text == "Do it."
    with_own = library.sha256
    write(tmp_path, "a", plain)
    assert load_library(tmp_path).graded("minimal").for_task("x").text == "Do this."
    assert load_library(tmp_path).sha256 != with_own
    write(tmp_path, "a", plain.replace("task_types", f"minimal: {'long ' * 9}\ntask_types"))
    with pytest.raises(SkillFileError, match="longer than its full one"):
        load_library(tmp_path)


def test_a_library_is_read_once_until_a_file_changes(tmp_path):
    write(tmp_path, "a", GOOD.format(name="a", types="[x]", text="one"))
    first = load_library(tmp_path)
    assert load_library(str(tmp_path)) is first
    write(tmp_path, "a", GOOD.format(name="a", types="[x]", text="another"))
    assert load_library(tmp_path).for_task("x").text == "another"
    assert load_library(tmp_path).sha256 != first.sha256


def test_hashes_do_not_depend_on_line_ends_or_a_byte_order_mark(tmp_path):
    text = GOOD.format(name="a", types="[x]", text="one\ntwo\n\nthrée")
    unix = read_skill(write(tmp_path, "u", text))
    windows = read_skill(write(tmp_path, "w", b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode()))
    assert unix == windows
    assert unix.text == "one\ntwo\n\nthrée"


def test_extra_fields_are_allowed_and_rules_in_the_text_stay(tmp_path):
    file = write(tmp_path, "a", "---\nname: a\ndescription: d\ntask_types: [x]\nlicense: MIT\n---\none\n---\ntwo\n")
    assert read_skill(file).text == "one\n---\ntwo"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("just text", "no front matter"),
        ("\n---\nname: a\n---\nt", "no front matter"),
        ("---\nname: a\n", "never ends"),
        ("---\n---\ntext", "must be fields"),
        ("---\n2001-99-99\n---\ntext", "must be fields"),
        ("---\nname: [\n---\ntext", "not YAML"),
        ("---\nname: a\ndescription: Use when: asked\n---\nt", "line 3\\); a value with ': ' .* in quotes"),
        ("---\nname: a\ndescription: d\nmetadata:\n  task_types: [x, y]\n---\nt", "joined by commas; got a list of 2"),
        ("---\nname: a\n---\ntext", "lacks description"),
        ("---\nname: 3\ndescription: d\ntask_types: [x]\n---\nt", "name must be a non-empty string"),
        ("---\nname: a\ndescription: d\ntask_types: x\n---\nt", "task_types must be a list"),
        ("---\nname: a\ndescription: d\ntask_types: [1]\n---\nt", "task_types must be a list"),
        ("---\nname: a\ndescription: d\ntask_types: [x]\n---\n \n\n", "empty"),
        (b"---\nname: a\xff\n---\nt", "not UTF-8"),
    ],
)
def test_a_bad_file_is_named_with_its_fault(tmp_path, content, complaint):
    file = write(tmp_path, "bad", content)
    with pytest.raises(SkillFileError, match=complaint) as caught:
        load_library(tmp_path)
    assert str(file) in str(caught.value)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("other", ["Heat", "heat"])
def test_two_skills_of_one_name_are_refused(tmp_path, other):
    write(tmp_path, "a", GOOD.format(name="Heat", types="[x]", text="t"))
    write(tmp_path, "b", GOOD.format(name=other, types="[y]", text="t"))
    with pytest.raises(SkillFileError, match=f"'Heat' and '{other}'; names are unique"):
        load_library(tmp_path)


def test_what_is_not_there_is_an_error_with_a_suggestion(tmp_path):
    with pytest.raises(SkillFileError, match="Did you mean 'alfworld'"):
        load_library("alfword")
    with pytest.raises(SkillFileError, match="holds no skill"):
        load_library(tmp_path)
    with pytest.raises(SkillFileError, match="Did you mean 'pick_heat_then_place_in_recep'"):
        load_library("alfworld").for_task("pick_heat_then_place")
    write(tmp_path, "g", GOOD.format(name="g", types='["*"]', text="t"))
    write(tmp_path, "y", GOOD.format(name="y", types="[y]", text="t"))
    with pytest.raises(SkillFileError, match="no skill for task type 'x'"):
        load_library(tmp_path).for_task("x")
