"""Skills on disk: what is read, what is refused in words, and what strangers wrote costs little, whatever it holds."""

import hashlib
import os
from pathlib import Path

import pytest

from skill_library import Skill, SkillFileError, SkillLibrary, load_library, read_bounded
from skill_library.errors import UnreadableFileError
from skill_library.formats import read_agent_skills
from skill_library.loader import MAX_FILE_BYTES, MAX_SKILLS, read_skill
from skill_library.skill import MAX_CHARACTERS, MAX_TASK_TYPES
from skillc_gym.envs.registry import env_spec

FIELDS = "name: a\ndescription: d\ntask_types: [x]\n"


def write(folder: Path, front: str = FIELDS, text: str = "t") -> Path:
    return write_bytes(folder, f"---\n{front}---\n{text}\n".encode("utf-8", "surrogatepass"))


def write_bytes(folder: Path, content: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_bytes(content)
    return folder / "SKILL.md"


def named(name: str, types: str = "[x]") -> str:
    return f"name: {name}\ndescription: d\ntask_types: {types}\n"


def test_every_alfworld_type_has_a_general_and_an_own_skill():
    library = load_library("alfworld")
    general, *own = library.skills
    assert (general.is_general, general.name) == (True, "general")
    assert {kind: skill.name for skill in own for kind in skill.task_types} == env_spec("alfworld").task_types
    for alone in own:
        skill = library.for_task(*alone.task_types)
        assert (skill.name, skill.text) == (f"general+{alone.name}", f"{general.text}\n\n{alone.text}")
        assert skill.sha256 == hashlib.sha256(skill.text.encode()).hexdigest()
    assert library.longest == max(len(library.for_task(kind).text) for kind in library.task_types)


@pytest.mark.parametrize(
    ("library", "sha256"),
    [
        ("alfworld", "5cafced0ab64886076819fb3712c7f38a318b7b444276ca5056667853050c0d1"),
        ("webshop", "c306ed76305cc8693737e7bdc1c668f743ee8243400d81fc2ef5cbfa802255ea"),
        ("skillc_gym/envs/coins/skills", "4c21a6353e519318f51e677554dddb1e331be1cbe0e6ee1cb42c3fb5a033806c"),
    ],
)
def test_what_agents_read_has_not_changed_by_a_byte(library, sha256, monkeypatch):
    """Recorded results are of these texts; a change is a new version."""
    monkeypatch.chdir(Path(__file__).parents[2])
    assert load_library(library).sha256 == sha256


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


def test_a_skill_may_bring_its_own_minimal_text_and_a_library_is_read_once_until_a_file_changes(tmp_path):
    write(tmp_path / "a", f"minimal: Do it.\n{FIELDS}", "Do this.\nThen that.")
    first = load_library(tmp_path)
    assert first.graded("minimal").for_task("x").text == "Do it."
    assert load_library(str(tmp_path)) is first
    write(tmp_path / "a", text="Do this.\nThen that.")
    assert load_library(tmp_path).graded("minimal").for_task("x").text == "Do this."
    assert load_library(tmp_path).sha256 != first.sha256
    ours = "metadata:\n  minimal: |\n    Do it.\n  author: me\n"  # with white space, which is none of it
    write(tmp_path / "a", f"{ours}{FIELDS.replace('task_types: [x]', '')}", "Do this.\nThen that.")
    assert load_library(tmp_path).graded("minimal").skills[0].text == "Do it."


@pytest.mark.parametrize("read", [load_library, read_agent_skills])
def test_a_skill_that_may_not_be_read_is_no_smaller_library(tmp_path, monkeypatch, read):
    library = write(tmp_path / "library" / "own").parents[1]
    closed = write(library / "closed")
    lstat = Path.lstat

    def refuse(self):
        if self == closed:
            raise PermissionError(13, "Permission denied", str(self))
        return lstat(self)

    monkeypatch.setattr(Path, "lstat", refuse)
    with pytest.raises(SkillFileError, match="Permission denied"):
        read(library)


def test_hashes_do_not_depend_on_line_ends_or_a_byte_order_mark_and_rules_in_the_text_stay(tmp_path):
    text = f"---\nlicense: MIT\n{FIELDS}---\none\n---\ntwo\n\nthrée\n"
    unix = read_skill(write_bytes(tmp_path / "u", text.encode()))
    windows = read_skill(write_bytes(tmp_path / "w", b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode()))
    assert unix == windows
    assert unix.text == "one\n---\ntwo\n\nthrée"


def test_a_skill_that_holds_others_is_no_library_in_silence(tmp_path):
    write(tmp_path, named("root", '["*"]'))
    write(tmp_path / "assets", named("template", '["*"]'))  # material of a skill
    assert load_library(tmp_path).skills[0].name == "root"
    write(tmp_path / "g", named("g", '["*"]'))
    with pytest.raises(SkillFileError, match="is a skill and holds others, such as g"):
        load_library(tmp_path)


def test_what_is_not_there_is_an_error_with_a_suggestion_and_names_are_unique(tmp_path):
    with pytest.raises(SkillFileError, match="Did you mean 'alfworld'"):
        load_library("alfword")
    with pytest.raises(SkillFileError, match="holds no skill"):
        load_library(tmp_path)
    with pytest.raises(SkillFileError, match="Did you mean 'pick_heat_then_place_in_recep'"):
        load_library("alfworld").for_task("pick_heat_then_place")
    write(tmp_path / "g", named("Heat", '["*"]'))
    write(tmp_path / "y", named("y", "[y]"))
    with pytest.raises(SkillFileError, match="no skill for task type 'x'"):
        load_library(tmp_path).for_task("x")
    for other in ("Heat", "heat"):
        write(tmp_path / "y", named(other, "[y]"))
        with pytest.raises(SkillFileError, match=f"'Heat' and '{other}'; names are unique"):
            load_library(tmp_path)


# Of strangers --------------------------------------------------------------------------------------------------------


def refused(file: Path, complaint: str) -> str:
    """Reads a skill that must be refused in a short message that names the file."""
    with pytest.raises(SkillFileError, match=complaint) as caught:
        read_skill(file)
    assert str(file) in str(caught.value)
    assert len(str(caught.value)) < 1000 + len(str(file))
    assert isinstance(caught.value, ValueError)
    return str(caught.value)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"just text", "no front matter"),
        (b"---\nname: a\n", "never ends"),
        (b"---\n---\ntext", "must be fields"),
        (b"---\nname: [\n---\ntext", "not YAML"),
        (b"---\nname: a\n---\ntext", "lacks description"),
        (f"---\n{FIELDS}---\n \n\n".encode(), "empty"),
        (b"---\nname: a\xff\n---\nt", "not UTF-8"),
    ],
)
def test_a_bad_file_is_named_with_its_fault(tmp_path, content, complaint):
    refused(write_bytes(tmp_path, content), complaint)


D = "description: d\n"


@pytest.mark.parametrize(
    ("front", "complaint"),
    [
        ("a: &a [x]\nb: [*a, *a]\n" + FIELDS, "anchors or aliases"),
        ("x: " + "[" * 5000 + "\n" + FIELDS, "opening brackets"),
        ("x: " + "[" * 9 + "]" * 9 + "\n" + FIELDS, "nested deeper"),
        ("x: '" + "y" * 20_000 + "'\n" + FIELDS, "longer than 16,384"),
        ("x: !!python/object/apply:os.system [ls]\n" + FIELDS, "YAML's tags"),
        ("name: a\n" + named("b"), "field 'name' twice"),
        (named("../../etc"), "no name for a skill"),
        (named("h\u0435at"), "no name for a skill"),  # a Cyrillic e
        (named("a" * 65), "no name for a skill"),
        ("name: a\ndescription: " + "d" * 5000 + "\ntask_types: [x]\n", "description of 'a' is longer"),
        ("name: a\ndescription: Use when: asked\n", "line 3\\); a value with ': ' .* in quotes"),
        (named("a", '["a\\nb"]'), "is no task type"),
        (named("a", "['*', x]"), "beside"),
        (f"name: a\n{D}metadata:\n  task_types: [x, y]\n", "joined by commas; got a list of 2"),
        (f"name: a\n{D}metadata: {{minimal: {'x' * 99}}}\n", "longer than its full one"),
        (f"name: a\n{D}metadata: task_types=x\n", "metadata must be fields below it"),
        (named("a", "x"), "task_types must be a list"),
        (named("2001-99-99"), r"timestamp; put it in quotes"),
        (named("1" + "0" * 5000), "int; put it in quotes"),
        (named("="), "YAML value; put it in quotes"),
    ],
)
def test_hostile_front_matter_is_refused_at_once(tmp_path, front, complaint):
    refused(write(tmp_path, front), complaint)


@pytest.mark.parametrize("scalar", ["2001-99-99", "1_0:99", ".nan", "=", "12e999999"])
def test_odd_scalars_in_fields_that_nobody_reads_are_no_matter(tmp_path, scalar):
    assert read_skill(write(tmp_path, f"x: {scalar}\n{scalar}: y\n? [a]\n: b\n{FIELDS}")).name == "a"


@pytest.mark.parametrize("nothing", ["null", "~", ""])
def test_metadata_that_say_nothing_are_none(tmp_path, nothing):
    for metadata in (f"{{task_types: {nothing}, library_name: {nothing}}}", nothing):
        skill = read_skill(write(tmp_path, f"name: a\n{D}metadata: {metadata}\n"))
        assert (skill.name, skill.task_types) == ("a", ("*",))


@pytest.mark.parametrize("character", ["\x00", "\x1b", "\x7f"])
def test_control_characters_in_the_text_are_refused(tmp_path, character):
    assert f"U+{ord(character):04X}" in refused(write(tmp_path, text=f"a{character}b"), "remove it")


@pytest.mark.parametrize(
    ("name", "types", "text", "fault"),
    [
        ("a", (), "t", "serves no task type"),
        ("a", ("x",), "half a pair: \ud800", "D800"),
        ("../a", ("x",), "t", "no name"),
    ],
)
def test_a_skill_made_in_memory_is_held_to_the_same(name, types, text, fault):
    with pytest.raises(SkillFileError, match=fault):
        Skill(name, "d", types, text)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_pipes_folders_and_devices_are_refused_without_waiting(tmp_path):
    pipe, folder, zero = (tmp_path / name / "one" / "SKILL.md" for name in ("pipe", "folder", "zero"))
    for place in (pipe, folder / "inside", zero):
        place.parent.mkdir(parents=True)
    os.mkfifo(pipe)
    zero.symlink_to("/dev/zero")
    for file, fault in ((pipe, "not a regular file"), (folder, "not a regular file"), (zero, "leads out of")):
        with pytest.raises(SkillFileError, match=fault):
            load_library(file.parents[1])
    with pytest.raises(UnreadableFileError, match="not a regular file"):
        read_bounded(Path("/dev/zero"), 10)


def test_a_file_of_any_size_is_refused_without_being_read(tmp_path):
    file = write(tmp_path / "big")
    with file.open("ab") as stream:
        stream.truncate(100 * 2**20)  # sparse: costs no disk
    refused(file, f"longer than the {MAX_FILE_BYTES:,} bytes")


@pytest.mark.parametrize("read", [load_library, read_agent_skills])
def test_links_may_not_lead_out_of_the_library_nor_nowhere(tmp_path, read):
    secret, library = write(tmp_path / "elsewhere"), write(tmp_path / "library" / "own", named("own")).parents[1]
    linked = library / "linked"
    linked.symlink_to(secret.parent)
    with pytest.raises(SkillFileError, match="link that leads out of"):
        read(library)
    linked.unlink()
    linked.mkdir()
    (linked / "SKILL.md").symlink_to(secret)
    with pytest.raises(SkillFileError, match="link that leads out of"):
        read(library)
    (linked / "SKILL.md").unlink()
    (linked / "SKILL.md").symlink_to(library / "nowhere")
    with pytest.raises(SkillFileError, match="linked"):
        read(library)


def test_a_file_in_small_letters_is_a_skill_as_the_specification_has_it(tmp_path):
    write(tmp_path / "lib" / "b", named("b"))
    write(tmp_path / "lib" / "a", named("a")).rename(tmp_path / "lib" / "a" / "skill.md")
    assert [skill.name for skill in load_library(tmp_path / "lib").skills] == ["a", "b"]
    assert [skill.name for skill in read_agent_skills(tmp_path / "lib")] == ["a", "b"]
    assert [skill.name for skill in load_library(tmp_path / "lib" / "a").skills] == ["a"]


def test_links_within_a_library_and_to_a_library_are_fine(tmp_path):
    own = write(tmp_path / "library" / "own").parent
    (tmp_path / "name").symlink_to(own.parent)
    assert load_library(tmp_path / "name").name == "library"
    (own.parent / "within").symlink_to(own)
    assert len(read_agent_skills(own.parent)) == 2


@pytest.mark.parametrize("field", ["task_type", "taskTypes", "tsak_types"])
@pytest.mark.parametrize("before", ["", "metadata:\n  "])
def test_a_misspelt_task_types_is_named_and_other_metadata_stay_free(tmp_path, before, field):
    with pytest.raises(SkillFileError, match=rf"task_types under metadata, got '{field}'"):
        read_skill(write(tmp_path, f"name: a\ndescription: d\n{before}{field}: heat\n"))
    front = "name: a\ndescription: d\nmetadata:\n  types: heat\n  task_tags: x\n  task_name: y\n"
    assert read_skill(write(tmp_path, front)).is_general


def test_links_that_form_a_ring_and_endless_names_are_refused(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    for name in (tmp_path / "a", "x" * 5000, "a\0b"):
        with pytest.raises(SkillFileError) as caught:
            load_library(name)
        assert len(str(caught.value)) < 1000


def test_a_library_is_bounded_as_a_whole(tmp_path):
    text, kinds = "t" * (MAX_CHARACTERS // 4), tuple(f"k{n}" for n in range(MAX_TASK_TYPES + 1))
    with pytest.raises(SkillFileError, match="characters of text"):
        SkillLibrary("l", tuple(Skill(f"s{n}", "d", ("x",), text) for n in range(5)))
    with pytest.raises(SkillFileError, match="task types"):
        SkillLibrary("l", (Skill("s", "d", kinds, "t"),))
    content = write(tmp_path / "s0")
    for number in range(1, MAX_SKILLS + 1):
        (tmp_path / f"s{number}").mkdir()
        os.link(content, tmp_path / f"s{number}" / "SKILL.md")
    with pytest.raises(SkillFileError, match="at most 1,000"):
        load_library(tmp_path)
